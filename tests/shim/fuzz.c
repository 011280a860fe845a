// SPDX-License-Identifier: GPL-2.0-or-later
// Random and bent bytes through everything that reads what a peer or a user sent. The sanitizers
// judge. Usage: fuzz [rounds [seed]]; a failure is repeated with the seed it printed.
#include <protobuf-c/protobuf-c.h>
#include <time.h>

#include "common/names.h"
#include "common/throttle.h"
#include "decisions/decision_results.h"
#include "expect.h"
#include "memory.h"
#include "options/chunks.h"
#include "options/malleable.h"
#include "random.h"
#include "report/sent_state.h"
#include "wire/framing.h"
#include "wire/reply.h"
#include "wire/settings.h"

size_t __sanitizer_get_current_allocated_bytes(void); // of the sanitizers

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
static void look_at(const pb_cycle_reply_t *reply, decision_results_t *results) {
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
        decision_results_add(results, decision, PB(OUTCOME__OUTCOME_STALE), 0, "fuzz");
    }
    EXPECT(length < ((size_t)1 << 40));
}

// What a reader may take for a reply: protobuf-c needs some hundred bytes for two of the wire, and
// no more than the scale of the cluster allows.
static const reply_scale_t scale = {.jobs = 4, .nodes = 8, .cpus = 32, .name_bytes = 24};

static unsigned decode(const unsigned char *bytes, size_t count) {
    unsigned understood = 0;
    decision_results_t results = {0};
    memory_t memory = {0};
    ProtobufCAllocator allocator = MEMORY_ALLOCATOR(&memory);
    char problem[200] = "";
    unsigned char *exact = malloc(count + 1);
    memcpy(exact, bytes, count);
    pb_cycle_reply_t *reply =
        reply_cycle(&scale, exact, count, &allocator, problem, sizeof(problem));
    EXPECT(!reply == (problem[0] != 0));
    EXPECT(memory.maximum <= 4096 + 256 * count);
    if (reply) {
        EXPECT(reply->n_decisions <= 2 * scale.jobs + scale.cpus + 1024);
        look_at(reply, &results);
        EXPECT(results.list.count == reply->n_decisions);
        schedbridge__v1__cycle_reply__free_unpacked(reply, &allocator);
        understood = 1;
    } else {
        // What is refused is not understood by protobuf-c either, or is more than was asked for.
        EXPECT(strlen(problem) > 10);
    }
    pb_hello_reply_t *hello = reply_hello(exact, count, &allocator, problem, sizeof(problem));
    EXPECT(memory.maximum <= 8192 + 256 * count);
    if (hello)
        schedbridge__v1__hello_reply__free_unpacked(hello, &allocator);
    EXPECT_NUMBER(memory.now, 0);
    const unsigned char *message;
    size_t message_bytes;
    if (!frame_open(exact, count, &message, &message_bytes))
        EXPECT(message + message_bytes == exact + count);
    trailers_t trailers = {.status = -1};
    trailers_take(&trailers, (const char *)exact, count);
    for (const char *sign = trailers.message; *sign; sign++)
        EXPECT(*sign >= ' ' && *sign <= '~');
    free(exact);
    decision_results_clear(&results);
    return understood;
}

// Requests in chunks, hostlists and texts: of signs that mean something there, and of any.
static void read_requests(void) {
    static const char signs[] = "0123456789,,--[[]]n+:=gmkcpus ";
    static const char *const words[] = {"ncpus=",      "mem=",  "1:",        "2:ncpus=4", "+",
                                        ":mpiprocs=2", "gb",    "host=n1",   ":ngpus=1",  "scatter",
                                        "pack",        ":excl", "free",      ":group=",   "n[1-",
                                        "]",           ",",     "9999999999"};
    char text[300], place[60], line[40];
    size_t length = 0;
    while (length + 24 < sizeof(text) && random_below(12)) {
        if (random_below(2))
            length += (size_t)sprintf(text + length, "%s",
                                      words[random_below(sizeof(words) / sizeof(words[0]))]);
        else
            text[length++] = random_below(8) ? signs[random_below(sizeof(signs) - 1)]
                                             : (char)(1 + random_below(255));
    }
    text[length] = 0;
    snprintf(place, sizeof(place), "%s", text + random_below((unsigned)length + 1));
    size_t maximum = 1 + random_below(1000), names = names_count(text, maximum);
    EXPECT(names <= maximum);
    EXPECT(strlen(plain(line, sizeof(line), text)) < sizeof(line));
    arena_t arena = {0};
    EXPECT(strlen(arena_cut(&arena, text, 30)) <= 30);
    arena_reset(&arena);
    static chunks_t chunks;
    chunks_problem_t problem = {0};
    chunks_options_t options = {.count = 0};
    if (chunks_read(&chunks, text, random_below(2) ? place : NULL, &problem)) {
        EXPECT(chunks.n_groups >= 1 && chunks.n_groups <= CHUNKS_MAX_GROUPS);
        if (!chunks_lower(&chunks, random_below(2) ? "gpu,mic" : NULL, &options, &problem))
            EXPECT(problem.words[0]);
        (void)chunks_threads(&chunks);
        chunks_options_free(&options);
    } else {
        char lines[512];
        EXPECT(problem.words[0]);
        chunks_point(&problem, lines, sizeof(lines));
    }
}

static void forget(const sent_job_t *job, void *count) {
    EXPECT(job->job_id);
    ++*(unsigned *)count;
}

// A sent state that lives through all rounds, while jobs with numbers of any kind come and go.
static void keep_sent_state(sent_state_t *sent_state) {
    unsigned gone = 0;
    bool made;
    for (unsigned jobs = random_below(6); jobs; jobs--) {
        uint32_t id = 1 + (random_below(4) ? random_below(2000) : UINT32_MAX - 1 - random_below(9));
        sent_job_t *entry = sent_state_put(sent_state, id, &made);
        EXPECT_NUMBER(entry->job_id, id);
        entry->scan = sent_state->scan + (random_below(50) == 0);
        EXPECT(sent_state_find(sent_state, id) == entry);
    }
    if (random_below(30) == 0) {
        size_t before = sent_state->count;
        sent_state->scan++;
        sent_state_sweep(sent_state, forget, &gone);
        EXPECT_NUMBER(sent_state->count, before - gone);
    }
    EXPECT(sent_state->room <= 16384);
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
    sent_state_t sent_state = {0};
    random_seed(seed);
    printf("fuzz: %u rounds, seed %llu\n", rounds, seed);
    fflush(stdout);
    EXPECT_NUMBER(decode(reply, reply_bytes), 1);
    for (unsigned round = 0; round < rounds; round++) {
        if ((round + 1) % 1000000 == 0) {
            size_t used = __sanitizer_get_current_allocated_bytes();
            printf("fuzz: %u rounds, %zu bytes in use\n", round + 1, used);
            fflush(stdout);
            EXPECT(used < (size_t)64 * 1024 * 1024);
        }
        size_t bytes = random_below(sizeof(noise));
        for (size_t i = 0; i < bytes; i++)
            noise[i] = (unsigned char)random_below(256);
        understood += decode(noise, bytes);
        read_texts(noise, bytes);
        read_requests();
        keep_sent_state(&sent_state);
        unsigned char *bent = malloc(reply_bytes);
        memcpy(bent, reply, reply_bytes);
        for (unsigned flips = 1 + random_below(4); flips; flips--)
            bent[random_below((unsigned)reply_bytes)] = (unsigned char)random_below(256);
        understood += decode(bent, reply_bytes - random_below(3) * random_below(20));
        free(bent);
    }
    free(reply);
    sent_state_clear(&sent_state);
    EXPECT(understood > rounds / 20); // else the fuzzing never gets past the parser
    DONE();
}
