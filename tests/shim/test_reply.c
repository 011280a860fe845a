// SPDX-License-Identifier: GPL-2.0-or-later
// Replies that are absurd are refused before memory is taken for them; what a service says that
// knows more than this plugin is read.
#include "common/names.h"
#include "expect.h"
#include "memory.h"
#include "wire/framing.h"
#include "wire/reply.h"

#define KIB 1024

static const reply_scale_t small = {.jobs = 10, .nodes = 8, .cpus = 32, .name_bytes = 24};
static const reply_scale_t large = {
    .jobs = 100000, .nodes = 10000, .cpus = 640000, .name_bytes = 70000};
static unsigned char *bytes;
static size_t count;
static char problem[300];
static memory_t memory;

static void byte(unsigned value) {
    bytes[count++] = (unsigned char)value;
}

static void number(uint64_t value) {
    for (; value > 127; value >>= 7)
        byte((unsigned)(value & 127) | 128);
    byte((unsigned)value);
}

static void field(unsigned name, unsigned wire) {
    number((uint64_t)name << 3 | wire);
}

// The head of a message or a text inside another message.
static void head(unsigned name, size_t length) {
    field(name, 2);
    number(length);
}

static pb_cycle_reply_t *read_reply(const reply_scale_t *scale) {
    memory = (memory_t){0};
    static ProtobufCAllocator allocator = MEMORY_ALLOCATOR(&memory);
    problem[0] = 0;
    unsigned char *exact = malloc(count + 1); // so that a sanitizer sees where it ends
    memcpy(exact, bytes, count);
    pb_cycle_reply_t *reply =
        reply_cycle(scale, exact, count, &allocator, problem, sizeof(problem));
    EXPECT(!reply == (problem[0] != 0));
    if (reply)
        schedbridge__v1__cycle_reply__free_unpacked(reply, &allocator);
    EXPECT_NUMBER(memory.now, 0);
    free(exact);
    return reply;
}

static void refused(const reply_scale_t *scale, const char *words) {
    EXPECT(!read_reply(scale));
    EXPECT_SAYS(problem, words);
    EXPECT_NUMBER(memory.maximum, 0);
    count = 0;
}

static void understood(const reply_scale_t *scale) {
    pb_cycle_reply_t *reply = read_reply(scale);
    if (!reply)
        fprintf(stderr, "%s\n", problem);
    EXPECT(reply);
    count = 0;
}

static void empty_decisions(size_t decisions) {
    for (size_t i = 0; i < decisions; i++)
        head(3, 0);
}

// 64 MiB of them took 3.9 GB and 20 s.
static void empty_decisions_are_counted(void) {
    empty_decisions(2 * 10 + 32 + 1024);
    understood(&small);
    empty_decisions(2 * 10 + 32 + 1024 + 1);
    refused(&small, "more than 1076 decisions");
    empty_decisions(FRAME_MAX_REPLY / 2);
    refused(&small, "a reply of 67108864 bytes: longer than");
    empty_decisions(FRAME_MAX_REPLY / 2);
    refused(&large, "more than 841024 decisions");
}

static void a_decision_of(unsigned action, size_t length) {
    size_t n = 1; // bytes of the length
    for (size_t left = length >> 7; left; left >>= 7)
        n++;
    head(3, 1 + n + length);
    head(action, length);
}

static void node_uses_are_counted(void) {
    a_decision_of(4, 2 * 40); // as many as nodes and CPUs
    for (int i = 0; i < 40; i++)
        head(4, 0);
    understood(&small);
    a_decision_of(4, 2 * 41);
    for (int i = 0; i < 41; i++)
        head(4, 0);
    refused(&small, "names CPUs more than 40 times");
    for (int i = 0; i < 41; i++) { // over all decisions together
        a_decision_of(4, 2);
        head(4, 0);
    }
    refused(&small, "names CPUs more than 40 times");
    a_decision_of(4, 2 + 41); // tasks on nodes, packed
    head(3, 41);
    for (int i = 0; i < 41; i++)
        byte(1);
    refused(&small, "names CPUs more than 40 times");
    a_decision_of(4, 2 * 41); // and one by one
    for (int i = 0; i < 41; i++) {
        field(3, 0);
        byte(1);
    }
    refused(&small, "names CPUs more than 40 times");
}

static void texts_and_decisions_are_bounded(void) {
    size_t length = NAMES_MAX_BYTES + 1;
    head(3, 4 + length);
    head(2, length);
    memset(bytes + count, '1', length);
    count += length;
    refused(&small, "a text of 262145 bytes");
    length = 600 * KIB; // unknown to us, but of nobody's use
    head(3, 4 + length);
    head(200, length - 1);
    memset(bytes + count, 0, length - 1);
    count += length - 1;
    refused(&small, "a decision of 614404 bytes: longer than");
}

static void unknown_fields_are_few(void) {
    for (unsigned i = 0; i < 100; i++) { // two in each decision
        head(3, 6);
        field(100, 0);
        byte(1);
        field(101, 0);
        byte(1);
    }
    understood(&small);
    for (unsigned i = 0; i < 60; i++) {
        head(3, 180);
        for (unsigned k = 0; k < 60; k++) {
            field(100, 0);
            byte(1);
        }
    }
    refused(&small, "fields that this plugin does not know");
    for (unsigned i = 0; i < 65; i++) {
        field(100, 0);
        byte(1);
    }
    refused(&small, "not understood");
}

static void what_is_no_message_is_refused(void) {
    static const struct {
        const char *bytes;
        size_t count;
    } wrong[] = {
        {"\x1a", 1},         // a cut head
        {"\x1a\x05\x08", 3}, // longer than the reply
        {"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
        {"\x03\x04", 2},                                          // a group
        {"\x00\x00", 2},                                          // field 0
        {"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, // an endless number
        {"\x11\x01", 2},                                          // cut
        {"\x1a\x06\x22\x00\x2a\x00\x22\x00", 8},                  // two actions of one decision
        {"\x1a\x06\x22\x00\x22\x00\x08\x01", 8},
        {"\x18\x01", 2}, // a number where a decision is wanted
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(bytes, wrong[i].bytes, wrong[i].count);
        count = wrong[i].count;
        EXPECT(!read_reply(&small));
        EXPECT_TEXT(problem, "the reply is not understood");
        count = 0;
    }
}

static void scales_of_any_size_do_no_harm(void) {
    const reply_scale_t endless = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    const reply_scale_t none = {0};
    EXPECT_NUMBER(reply_max_bytes(&endless), FRAME_MAX_REPLY);
    EXPECT(reply_max_bytes(&none) >= KIB * KIB);
    EXPECT(reply_max_bytes(&large) == FRAME_MAX_REPLY);
    empty_decisions(1000);
    understood(&endless);
    empty_decisions(1000);
    understood(&none);
}

// The most that a legitimate reply can hold, and what is taken for it.
static void memory_is_a_small_multiple_of_the_reply(void) {
    pb_pending_t reason = SCHEDBRIDGE__V1__PENDING__INIT;
    pb_planned_start_t planned = SCHEDBRIDGE__V1__PLANNED_START__INIT;
    pb_decision_t *decisions = calloc(20000, sizeof(*decisions));
    pb_decision_t **list = calloc(20000, sizeof(*list));
    pb_cycle_reply_t reply = SCHEDBRIDGE__V1__CYCLE_REPLY__INIT;
    reason.text = "needs 4 nodes of main, 0 free now";
    planned.nodes = "n[1-2,5-9,100-200]";
    planned.partition = "main";
    planned.reason = &reason;
    for (unsigned i = 0; i < 20000; i++) {
        schedbridge__v1__decision__init(&decisions[i]);
        decisions[i].id = i + 1;
        decisions[i].job_id = "1234567";
        decisions[i].job_version = UINT64_MAX - i;
        decisions[i].action_case = PB(DECISION__ACTION_PLANNED_START);
        decisions[i].planned_start = &planned;
        list[i] = &decisions[i];
    }
    reply.decisions = list;
    reply.n_decisions = 20000;
    count = protobuf_c_message_pack(&reply.base, bytes);
    EXPECT(read_reply(&large));
    size_t real = memory.maximum / 20000;
    EXPECT(real < 2000);
    count = 0;
    free(decisions);
    free(list);
    // The worst that is let through, for so many jobs.
    empty_decisions(2 * large.jobs + large.cpus + 1024);
    EXPECT(read_reply(&large));
    EXPECT(memory.maximum < (2 * large.jobs + large.cpus + 1024) * real);
    count = 0;
}

static void a_hello_is_short(void) {
    static unsigned char long_one[65 * KIB];
    problem[0] = 0;
    EXPECT(!reply_hello(long_one, sizeof(long_one), NULL, problem, sizeof(problem)));
    EXPECT_SAYS(problem, "a reply of 66560 bytes: longer than 65536");
    pb_hello_reply_t hello = SCHEDBRIDGE__V1__HELLO_REPLY__INIT;
    char *features[65];
    for (int i = 0; i < 65; i++)
        features[i] = "";
    hello.features = features;
    hello.n_features = 60;
    count = protobuf_c_message_pack(&hello.base, bytes);
    pb_hello_reply_t *read = reply_hello(bytes, count, NULL, problem, sizeof(problem));
    EXPECT(read && read->n_features == 60);
    schedbridge__v1__hello_reply__free_unpacked(read, NULL);
    hello.n_features = 65;
    count = protobuf_c_message_pack(&hello.base, bytes);
    EXPECT(!reply_hello(bytes, count, NULL, problem, sizeof(problem)));
    count = 0;
}

int main(void) {
    bytes = malloc(FRAME_MAX_REPLY + KIB);
    EXPECT(bytes);
    empty_decisions_are_counted();
    node_uses_are_counted();
    texts_and_decisions_are_bounded();
    unknown_fields_are_few();
    what_is_no_message_is_refused();
    scales_of_any_size_do_no_harm();
    memory_is_a_small_multiple_of_the_reply();
    a_hello_is_short();
    free(bytes);
    DONE();
}
