// SPDX-License-Identifier: GPL-2.0-or-later
// Requests with conditions that the wire cannot state, one kind after the other, with random nodes:
// whatever the service names, Slurm judges the whole request, and no job gets nodes that break it.
#include "applying.h"
#include "random.h"
#include "rules/unmodelled.h"

#define ROUNDS 200

// ---------------------------------------------------------------- one of each kind

static multi_core_data_t shape;

static void overcommits(job_record_t *job) {
    job->details->overcommit = 1;
}

static void wants_contiguous(job_record_t *job) {
    job->details->contiguous = 1;
}

static void wants_sockets(job_record_t *job) {
    shape = (multi_core_data_t){.sockets_per_node = 2};
    job->details->mc_ptr = &shape;
}

static void wants_tasks_on_cores(job_record_t *job) {
    shape = (multi_core_data_t){.ntasks_per_core = 1};
    job->details->mc_ptr = &shape;
}

static void prefers(job_record_t *job) {
    job->details->prefer = xstrdup("fast");
}

static void is_open_to_widths(job_record_t *job) {
    job->details->max_nodes = 8;
    job->details->num_tasks = 16;
}

static void wants_local_disk(job_record_t *job) {
    job->details->pn_min_tmp_disk = 1;
}

static void keeps_cores(job_record_t *job) {
    job->details->core_spec = 1;
}

static void spreads(job_record_t *job) {
    job->bit_flags |= SPREAD_JOB;
}

static void wants_few_nodes(job_record_t *job) {
    job->bit_flags |= USE_MIN_NODES;
}

static void wants_devices_on_sockets(job_record_t *job) {
    job->tres_per_socket = xstrdup("gres/gpu:1");
}

static void counts_features(job_record_t *job) {
    job->details->features = xstrdup("[rack1*1&rack2*1]");
}

static void wants_one_rack(job_record_t *job) {
    job->details->features = xstrdup("[rack1|rack2]");
}

static void lists_widths(job_record_t *job) {
    bitstr_t *widths = job->details->job_size_bitmap = bit_alloc(9);
    for (bitoff_t width = 1; width < 9; width++)
        bit_set(widths, width);
}

static void names_too_many(job_record_t *job) {
    job->details->req_node_bitmap = bit_alloc(8);
    bit_not(job->details->req_node_bitmap);
}

static void may_enter_reservations(job_record_t *job) {
    (void)job;
    (void)mock_reservation("open", RESERVE_FLAG_MAGNETIC);
}

static void is_where_the_least_loaded_go(job_record_t *job) {
    job->part_ptr->flags |= PART_FLAG_LLN;
}

static void is_where_nodes_are_of_one_user(job_record_t *job) {
    job->part_ptr->flags |= PART_FLAG_EXCLUSIVE_USER;
}

static void is_where_cpus_are_shared(job_record_t *job) {
    job->part_ptr->max_share = SHARED_FORCE | 2;
}

static void is_where_cpus_are_bounded(job_record_t *job) {
    job->part_ptr->max_cpus_per_node = 2;
}

static void is_where_sockets_are_bounded(job_record_t *job) {
    job->part_ptr->max_cpus_per_socket = 2;
}

static const struct {
    const char *name; // the plugin's
    void (*state)(job_record_t *);
} kinds[] = {
    {"--overcommit", overcommits},
    {"--contiguous", wants_contiguous},
    {"--extra-node-info", wants_sockets},
    {"--extra-node-info", wants_tasks_on_cores},
    {"--prefer", prefers},
    {"--nodes=1-3 --ntasks=6", is_open_to_widths},
    {"--tmp", wants_local_disk},
    {"--core-spec", keeps_cores},
    {"--spread-job", spreads},
    {"--use-min-nodes", wants_few_nodes},
    {"--gpus-per-socket", wants_devices_on_sockets},
    {"--constraint=[a*1&b*2]", counts_features},
    {"--constraint=[a*1&b*2]", wants_one_rack},
    {"--nodes=1,3", lists_widths},
    {"--nodelist=n1,n2 --nodes=1", names_too_many},
    {"--reservation=a,b", may_enter_reservations},
    {"LLN=YES", is_where_the_least_loaded_go},
    {"ExclusiveUser=YES", is_where_nodes_are_of_one_user},
    {"OverSubscribe=FORCE", is_where_cpus_are_shared},
    {"MaxCPUsPerNode", is_where_cpus_are_bounded},
    {"MaxCPUsPerSocket", is_where_sockets_are_bounded},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

// ---------------------------------------------------------------- random nodes

static bitstr_t *some_nodes(unsigned wanted) {
    bitstr_t *nodes = bit_alloc(8);
    while ((unsigned)bit_set_count(nodes) < wanted)
        bit_set(nodes, (bitoff_t)random_below(8));
    return nodes;
}

static job_record_t *a_job(size_t kind, unsigned width) {
    job_record_t *job = waiting(1);
    job->details->min_nodes = job->details->max_nodes = width;
    job->details->num_tasks = width;
    kinds[kind].state(job);
    EXPECT(job_is_unmodelled(job));
    return job;
}

static void forget(job_record_t *job) {
    job->details->mc_ptr = NULL;
    FREE_NULL_BITMAP(job->details->job_size_bitmap);
    end();
}

// ---------------------------------------------------------------- properties

// Whether a kind of the plugin has a request above, which is of that kind.
static bool is_requested(const unmodelled_kind_t *kind) {
    bool found = false;
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].name, kind->name))
            continue;
        begin();
        job_record_t *job = a_job(i, 2);
        found = job_is_of_kind(job, kind);
        forget(job);
        if (!found)
            return false;
    }
    return found;
}

static void every_kind_is_tried(void) {
    for (const unmodelled_kind_t *kind = unmodelled_kinds; kind->name; kind++) {
        if (!is_requested(kind))
            fprintf(stderr, "%s: no request of this kind is tried\n", kind->name);
        EXPECT(is_requested(kind));
    }
}

// Whether it is told exactly which nodes or may choose: Slurm takes nodes that a request requires
// as they are, so that it must not be told that they are required, unless their user named them.
static void slurm_judges_the_whole_request(void) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            begin();
            random_seed(kind * ROUNDS + round);
            unsigned width = 1 + random_below(4);
            job_record_t *job = a_job(kind, width);
            bool named = job->details->req_node_bitmap != NULL;
            unsigned more = named ? 0 : random_below(4);
            bitstr_t *given = some_nodes(width + more);
            bool exactly = !more && one_in(2);
            char *names = bitmap2node_name(given);
            mock.select_code = one_in(4) ? ESLURM_NODES_BUSY : 0;
            image_t before = image_of(job);
            if (exactly)
                start(job, names);
            else
                start(job, "")->choice = names;
            EXPECT(apply());
            EXPECT(mock.selects > 0);
            EXPECT_NUMBER(mock.select_nodes, width);
            if (!named)
                EXPECT_NUMBER(mock.select_required, 0);
            if (IS_JOB_RUNNING(job)) {
                EXPECT_NUMBER(job->node_cnt, width);
                EXPECT(bit_super_set(job->node_bitmap, given));
                EXPECT(!job->details->contiguous || nodes_are_contiguous(job->node_bitmap));
                FREE_NULL_BITMAP(before.required);
                FREE_NULL_BITMAP(before.excluded);
            } else { // of the nodes that were named others are tried
                expect_result(0, exactly ? REFUSED : BUSY, "error");
                EXPECT_NUMBER(know(job)->word, WAIT_RESOURCES);
                expect_same(&before, job);
            }
            free(names);
            FREE_NULL_BITMAP(given);
            forget(job);
        }
    }
}

// ---------------------------------------------------------------- nodes in use

static void nothing(void) {}

static void is_completing(void) {
    bit_clear(idle_node_bitmap, 1);
    bit_set(cg_node_bitmap, 1);
}

static void is_held_alone(void) {
    bit_clear(idle_node_bitmap, 1);
    bit_clear(share_node_bitmap, 1);
}

static void is_drained(void) {
    bit_clear(avail_node_bitmap, 1);
}

// Another job holds some of the four CPUs.
static void is_held_in_part(uint16_t cpus) {
    bit_clear(idle_node_bitmap, 1);
    mock_run(mock_job(2), 1, cpus);
}

static void has_three_cpus_left(void) {
    is_held_in_part(1);
}

static void has_one_cpu_left(void) {
    is_held_in_part(3);
}

static void has_no_cpu_left(void) {
    is_held_in_part(4);
}

// What may have become of the second node since the service was told of it. If it is free for the
// job, it never does, and the service tries others; else it does soon, and nothing counts against
// the job.
static void nodes_in_use_are_busy(void) {
    static const struct {
        void (*happens)(void);
        pb_outcome_t whole, single; // to a job of whole nodes, and to one of six CPUs on two
    } cases[] = {
        {nothing, REFUSED, REFUSED},          {is_completing, BUSY, BUSY},
        {is_held_alone, BUSY, BUSY},          {is_drained, BUSY, BUSY},
        {has_three_cpus_left, BUSY, REFUSED}, {has_one_cpu_left, BUSY, BUSY},
        {has_no_cpu_left, BUSY, BUSY},
    };
    for (size_t i = 0; i < 2 * KINDS * sizeof(cases) / sizeof(cases[0]); i++) {
        size_t which = i / 2 / KINDS, kind = i / 2 % KINDS;
        bool whole = i % 2;
        begin();
        job_record_t *job = a_job(kind, 2);
        job->details->whole_node = whole ? WHOLE_NODE_REQUIRED : 0;
        job->details->share_res = whole ? 0 : 254; // NO_VAL8: unstated
        job->details->min_cpus = 6;
        cases[which].happens();
        mock.select_code = ESLURM_NODES_BUSY;
        start(job, "n[1-2]");
        EXPECT(apply());
        expect_result(0, whole ? cases[which].whole : cases[which].single, "error");
        forget(job);
    }
}

// The CPUs of a job in chunks are stated for each node, which Slurm then takes as they are.
static void chunks_are_contiguous_too(void) {
    for (int contiguous = 0; contiguous < 2; contiguous++) {
        begin();
        job_record_t *job = a_job(1, 2);
        pb_node_use_t use = SCHEDBRIDGE__V1__NODE_USE__INIT, *uses[] = {&use};
        use.nodes = contiguous ? "n[3-4]" : "n[3,5]";
        use.cpus = 1;
        pb_start_t *wanted = start(job, use.nodes);
        wanted->uses = uses;
        wanted->n_uses = 1;
        EXPECT(apply());
        expect_result(0, contiguous ? APPLIED : REFUSED, contiguous ? "" : "not contiguous");
        EXPECT_NUMBER(mock.selects, contiguous);
        forget(job);
    }
}

// Whoever names nodes apart beside --contiguous gets them, as from Slurm.
static void a_users_own_list_is_taken_as_it_is(void) {
    begin();
    job_record_t *job = a_job(1, 2);
    job->details->req_node_bitmap = bit_alloc(8);
    bit_set(job->details->req_node_bitmap, 0);
    bit_set(job->details->req_node_bitmap, 6);
    start(job, "n[1,7]");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_TEXT(job->nodes, "n1,n7");
    forget(job);
}

static void contiguous_is_without_a_gap(void) {
    static const struct {
        const char *bits;
        bool contiguous;
    } cases[] = {{"11110000", true},  {"00000011", true},  {"00100000", true}, {"11111111", true},
                 {"10100000", false}, {"01110001", false}, {"10000001", false}};
    mock_begin(8, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bitstr_t *nodes = bit_alloc(8);
        for (bitoff_t at = 0; at < 8; at++) {
            if (cases[i].bits[at] == '1')
                bit_set(nodes, at);
        }
        EXPECT(nodes_are_contiguous(nodes) == cases[i].contiguous);
        FREE_NULL_BITMAP(nodes);
    }
    mock_end();
}

int main(void) {
    contiguous_is_without_a_gap();
    every_kind_is_tried();
    slurm_judges_the_whole_request();
    nodes_in_use_are_busy();
    chunks_are_contiguous_too();
    a_users_own_list_is_taken_as_it_is();
    DONE();
}
