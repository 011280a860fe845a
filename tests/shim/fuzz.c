// SPDX-License-Identifier: GPL-2.0-or-later
// Random and bent bytes through everything that reads what a peer or a user sent. The sanitizers
// judge. Usage: fuzz [rounds [seed]]; a failure is repeated with the seed it printed.
#include <protobuf-c/protobuf-c.h>
#include <time.h>

#include "expect.h"
#include "fates.h"
#include "framing.h"
#include "malleable.h"
#include "settings.h"

static unsigned long long state;

static unsigned random_below(unsigned bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % bound;
}

static void complain(const char *line) {
    EXPECT(line[0]);
}

// A reply with decisions of all kinds, as real as can be.
static size_t real_reply(unsigned char **bytes) {
    pb_pending_t pending = SCHEDBRIDGE__V1__PENDING__INIT;
    pb_start_t start = SCHEDBRIDGE__V1__START__INIT;
    pb_planned_start_t planned = SCHEDBRIDGE__V1__PLANNED_START__INIT;
    pb_decision_t decisions[3] = {SCHEDBRIDGE__V1__DECISION__INIT, SCHEDBRIDGE__V1__DECISION__INIT,
                                  SCHEDBRIDGE__V1__DECISION__INIT};
    pb_decision_t *list[3] = {&decisions[0], &decisions[1], &decisions[2]};
    pb_cycle_reply_t reply = SCHEDBRIDGE__V1__CYCLE_REPLY__INIT;
    uint32_t tasks[] = {4, 4};
    pending.code = PB(REASON_CODE__REASON_RESOURCES);
    pending.text = "needs 4 nodes of main, 0 free now";
    start.nodes = "n[1-2]";
    start.partition = "main";
    start.tasks = tasks;
    start.n_tasks = 2;
    planned.start_s = 1800000000;
    planned.nodes = "n[3-6]";
    planned.reason = &pending;
    for (int i = 0; i < 3; i++) {
        decisions[i].id = (uint64_t)i + 1;
        decisions[i].job_id = "1234_5";
        decisions[i].job_version = UINT64_C(0x123456789abcdef0);
    }
    decisions[0].action_case = PB(DECISION__ACTION_START);
    decisions[0].start = &start;
    decisions[1].action_case = PB(DECISION__ACTION_PLANNED_START);
    decisions[1].planned_start = &planned;
    decisions[2].action_case = PB(DECISION__ACTION_PENDING);
    decisions[2].pending = &pending;
    reply.generation = 77;
    reply.decisions = list;
    reply.n_decisions = 3;
    reply.service_epoch = UINT64_C(1800000000000000);
    size_t size = protobuf_c_message_get_packed_size(&reply.base);
    *bytes = malloc(size);
    EXPECT(*bytes);
    return protobuf_c_message_pack(&reply.base, *bytes);
}

// Every text and submessage that the plugin looks at must be there.
static void look_at(const pb_cycle_reply_t *reply, fates_t *fates) {
    size_t length = 0;
    for (size_t i = 0; i < reply->n_decisions; i++) {
        const pb_decision_t *decision = reply->decisions[i];
        length += strlen(decision->job_id);
        const pb_pending_t *pending = NULL;
        switch (decision->action_case) {
        case PB(DECISION__ACTION_START):
            length += strlen(decision->start->nodes) + strlen(decision->start->partition);
            break;
        case PB(DECISION__ACTION_PLANNED_START):
            length += strlen(decision->planned_start->nodes);
            length += strlen(decision->planned_start->partition);
            pending = decision->planned_start->reason;
            break;
        case PB(DECISION__ACTION_PENDING):
            pending = decision->pending;
            break;
        default:
            break;
        }
        if (pending)
            length += strlen(pending->text);
        fates_add(fates, decision, PB(OUTCOME__OUTCOME_STALE), 0, "fuzz");
    }
    EXPECT(length < ((size_t)1 << 40));
}

static unsigned decode(const unsigned char *bytes, size_t count) {
    unsigned understood = 0;
    fates_t fates = {0};
    unsigned char *exact = malloc(count + 1);
    memcpy(exact, bytes, count);
    pb_cycle_reply_t *reply = schedbridge__v1__cycle_reply__unpack(NULL, count, exact);
    if (reply) {
        look_at(reply, &fates);
        EXPECT(fates.list.count == reply->n_decisions);
        schedbridge__v1__cycle_reply__free_unpacked(reply, NULL);
        understood = 1;
    }
    pb_hello_reply_t *hello = schedbridge__v1__hello_reply__unpack(NULL, count, exact);
    if (hello)
        schedbridge__v1__hello_reply__free_unpacked(hello, NULL);
    const unsigned char *message;
    size_t message_bytes;
    if (!frame_open(exact, count, &message, &message_bytes))
        EXPECT(message + message_bytes == exact + count);
    trailers_t trailers = {.status = -1};
    trailers_take(&trailers, (const char *)exact, count);
    free(exact);
    fates_clear(&fates);
    return understood;
}

static void read_texts(const unsigned char *bytes, size_t count) {
    char text[700], problem[100];
    settings_t settings;
    malleable_t malleable = {0};
    bool ours;
    size_t length = count < sizeof(text) - 64 ? count : sizeof(text) - 64;
    static const char *const heads[] = {"", "bridge_", "bridge_socket=/",
                                        "bridge_silence_s=", "bridge_tls_dir=/x,bridge_address="};
    int head = snprintf(text, sizeof(text), "%s", heads[random_below(5)]);
    memcpy(text + head, bytes, length);
    text[(size_t)head + length] = 0;
    settings_read(&settings, text, complain);
    EXPECT(settings.socket[0] == '/' && settings.silence_s >= 1 && settings.poll_ms >= 1);
    EXPECT(!settings.address[0] == !settings.tls_dir[0]);
    char entry[800];
    snprintf(entry, sizeof(entry), "_SLURM_SPANK_OPTION_schedbridge_%s=%s",
             random_below(2) ? "malleable" : "min_power", text + head);
    if (malleable_take_entry(&malleable, entry, &ours, problem, sizeof(problem)))
        EXPECT(malleable.range_min_nodes <= malleable.range_max_nodes);
    (void)malleable_settle(&malleable, problem, sizeof(problem));
}

int main(int count, char **arguments) {
    unsigned rounds = count > 1 ? (unsigned)atoi(arguments[1]) : 20000;
    unsigned long long seed =
        count > 2 ? strtoull(arguments[2], NULL, 10) : (unsigned long long)time(NULL);
    unsigned char noise[512], *reply;
    size_t reply_bytes = real_reply(&reply);
    unsigned understood = 0;
    state = seed * 2654435761ULL + 1;
    printf("fuzz: %u rounds, seed %llu\n", rounds, seed);
    fflush(stdout);
    EXPECT_NUMBER(decode(reply, reply_bytes), 1);
    for (unsigned round = 0; round < rounds; round++) {
        size_t bytes = random_below(sizeof(noise));
        for (size_t i = 0; i < bytes; i++)
            noise[i] = (unsigned char)random_below(256);
        understood += decode(noise, bytes);
        read_texts(noise, bytes);
        unsigned char *bent = malloc(reply_bytes);
        memcpy(bent, reply, reply_bytes);
        for (unsigned flips = 1 + random_below(4); flips; flips--)
            bent[random_below((unsigned)reply_bytes)] = (unsigned char)random_below(256);
        understood += decode(bent, reply_bytes - random_below(3) * random_below(20));
        free(bent);
    }
    free(reply);
    EXPECT(understood > rounds / 20); // else the fuzzing never gets past the parser
    DONE();
}
