// SPDX-License-Identifier: GPL-2.0-or-later
// A mock of slurmctld: just the names that the plugin uses, with simple tables behind them, written
// for these tests alone. It watches what a real slurmctld would not forgive: records that are
// looked at or changed without the right lock, locks that are taken twice or kept during a call,
// memory that is freed twice (the sanitizers), a request that stays narrowed.
//
// The Makefile makes every header of Slurm that `slurm_compat.h` names out of this one.
#ifndef TESTS_SHIM_SLURM_MOCK_H
#define TESTS_SHIM_SLURM_MOCK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

// ---------------------------------------------------------------- numbers

#define SLURM_VERSION_NUM(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define SLURM_VERSION_NUMBER SLURM_VERSION_NUM(24, 11, 5)
#define SLURM_VERSION_MAJOR(n) ((n) >> 16)
#define SLURM_VERSION_MINOR(n) (((n) >> 8) & 0xff)
#define SLURM_VERSION_MICRO(n) ((n) & 0xff)

#define SLURM_SUCCESS 0
#define SLURM_ERROR (-1)
#define INFINITE 0xffffffffu
#define INFINITE64 UINT64_MAX
#define PROLOG_FLAG_ALLOC 1u
#define INFINITE16 ((uint16_t)0xffff)
#define SHARED_FORCE 0x8000
#define PART_FLAG_LLN (1u << 5)
#define PART_FLAG_EXCLUSIVE_USER (1u << 6)
#define SPREAD_JOB (1ull << 8)
#define JOB_NTASKS_SET (1ull << 14)
#define USE_MIN_NODES (1ull << 9)
#define NO_VAL 0xfffffffeu
#define NO_VAL16 ((uint16_t)0xfffe)
#define NO_VAL64 UINT64_C(0xfffffffffffffffe)
#define NO_CONSUME_VAL64 UINT64_C(0xfffffffffffffffd)
#define fuzzy_equal(a, b) ((a) - (b) > -0.00001 && (a) - (b) < 0.00001)
#define MEM_PER_CPU UINT64_C(0x8000000000000000)

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

enum {
    ESLURM_MOCK_FIRST = 2000,
    ESLURM_ACCOUNTING_POLICY,
    ESLURM_BURST_BUFFER_WAIT,
    ESLURM_DEPENDENCY,
    ESLURM_DISABLED,
    ESLURM_FED_JOB_LOCK,
    ESLURM_INVALID_ACCOUNT,
    ESLURM_INVALID_QOS,
    ESLURM_INVALID_TIME_LIMIT,
    ESLURM_JOB_HELD,
    ESLURM_JOB_SUSPENDED,
    ESLURM_LICENSES_UNAVAILABLE,
    ESLURM_NODE_NOT_AVAIL,
    ESLURM_RESERVATION_BUSY,
    ESLURM_RESERVATION_NOT_USABLE,
    ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE,
    ESLURM_NODES_BUSY,
    ESLURM_NOT_SUPPORTED,
    ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE,
};

enum {
    JOB_PENDING,
    JOB_RUNNING,
    JOB_SUSPENDED,
    JOB_COMPLETE,
    JOB_CANCELLED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_NODE_FAIL,
    JOB_PREEMPTED,
    JOB_BOOT_FAIL,
    JOB_DEADLINE,
    JOB_STATE_BASE = 0xff,
    JOB_REQUEUE = 0x400,
    JOB_REQUEUE_HOLD = 0x800,
    JOB_SPECIAL_EXIT = 0x1000,
    JOB_COMPLETING = 0x8000,
    JOB_CONFIGURING = 0x4000,
    JOB_REVOKED = 0x100000,
};

#define IS_JOB_BASE(job, state) (((job)->job_state & JOB_STATE_BASE) == (state))
#define IS_JOB_PENDING(job) IS_JOB_BASE(job, JOB_PENDING)
#define IS_JOB_RUNNING(job) IS_JOB_BASE(job, JOB_RUNNING)
#define IS_JOB_SUSPENDED(job) IS_JOB_BASE(job, JOB_SUSPENDED)
#define IS_JOB_FINISHED(job) (((job)->job_state & JOB_STATE_BASE) > JOB_SUSPENDED)
#define IS_JOB_COMPLETING(job) (((job)->job_state & JOB_COMPLETING) != 0)
#define IS_JOB_CONFIGURING(job) (((job)->job_state & JOB_CONFIGURING) != 0)
#define IS_JOB_REVOKED(job) (((job)->job_state & JOB_REVOKED) != 0)

enum {
    WAIT_NO_REASON,
    WAIT_PRIORITY,
    WAIT_DEPENDENCY,
    WAIT_RESOURCES,
    WAIT_PART_NODE_LIMIT,
    WAIT_PART_TIME_LIMIT,
    WAIT_PART_DOWN,
    WAIT_PART_INACTIVE,
    WAIT_HELD,
    WAIT_HELD_USER,
    WAIT_TIME,
    WAIT_LICENSES,
    WAIT_ASSOC_JOB_LIMIT,
    WAIT_ASSOC_TIME_LIMIT,
    WAIT_RESERVATION,
    WAIT_NODE_NOT_AVAIL,
    WAIT_QOS_THRES,
    WAIT_ARRAY_TASK_LIMIT,
    WAIT_CLEANING,
    WAIT_DEP_INVALID,
    WAIT_MAX_REQUEUE,
    WAIT_PART_CONFIG,
    WAIT_QOS,
    WAIT_ACCOUNT,
    WAIT_RESV_DELETED,
    WAIT_RESV_INVALID,
    FAIL_ACCOUNT,
    FAIL_QOS,
    FAIL_CONSTRAINTS,
    FAIL_BURST_BUFFER_OP,
    WAIT_ASSOC_GRP_NODE,
    WAIT_QOS_GRP_NODE,
    WAIT_QOS_MAX_NODE_PER_USER,
    WAIT_QOS_MAX_NODE_PER_ACCT,
    REASONS,
};
#define FAIL_BAD_CONSTRAINTS FAIL_CONSTRAINTS

enum { JSR_PART };

enum {
    NODE_STATE_UNKNOWN,
    NODE_STATE_DOWN,
    NODE_STATE_IDLE,
    NODE_STATE_ALLOCATED,
    NODE_STATE_MIXED,
    NODE_STATE_FUTURE,
    NODE_STATE_BASE = 0xf,
    NODE_STATE_FLAGS = 0xfffffff0,
    NODE_STATE_PLANNED = 0x10,
    NODE_STATE_COMPLETING = 0x20,
    NODE_STATE_DRAIN = 0x40,
    NODE_STATE_POWERED_DOWN = 0x80,
    NODE_STATE_POWERING_DOWN = 0x100,
    NODE_STATE_POWER_DOWN = 0x200,
    NODE_STATE_POWERING_UP = 0x400,
    NODE_STATE_POWER_UP = 0x800,
    NODE_STATE_NO_RESPOND = 0x1000,
    NODE_STATE_FAIL = 0x2000,
    NODE_STATE_MAINT = 0x4000,
    NODE_STATE_REBOOT_REQUESTED = 0x8000,
    NODE_STATE_REBOOT_ISSUED = 0x10000,
};
#define MOCK_NODE_HAS(node, flag) (((node)->node_state & (flag)) != 0)
#define IS_NODE_DOWN(node) (((node)->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN)
#define IS_NODE_IDLE(node) (((node)->node_state & NODE_STATE_BASE) == NODE_STATE_IDLE)
#define IS_NODE_COMPLETING(node) MOCK_NODE_HAS(node, NODE_STATE_COMPLETING)
#define IS_NODE_POWER_DOWN(node) MOCK_NODE_HAS(node, NODE_STATE_POWER_DOWN)
#define IS_NODE_POWERING_UP(node) MOCK_NODE_HAS(node, NODE_STATE_POWERING_UP)
#define IS_NODE_POWER_UP(node) MOCK_NODE_HAS(node, NODE_STATE_POWER_UP)
#define IS_NODE_NO_RESPOND(node) MOCK_NODE_HAS(node, NODE_STATE_NO_RESPOND)
#define IS_NODE_FUTURE(node) (((node)->node_state & NODE_STATE_BASE) == NODE_STATE_FUTURE)
#define IS_NODE_PLANNED(node) (((node)->node_state & NODE_STATE_PLANNED) != 0)
#define IS_NODE_POWERED_DOWN(node) (((node)->node_state & NODE_STATE_POWERED_DOWN) != 0)
#define IS_NODE_POWERING_DOWN(node) (((node)->node_state & NODE_STATE_POWERING_DOWN) != 0)

enum { NO_LOCK, READ_LOCK, WRITE_LOCK };
enum { ACCOUNTING_ENFORCE_LIMITS = 1, ACCOUNTING_ENFORCE_QOS = 2 };
enum { CR_MEMORY = 1, CR_CORE = 2, CR_SOCKET = 4 };
enum { PARTITION_INACTIVE, PARTITION_DOWN, PARTITION_SCHED };
enum { WHOLE_NODE_REQUIRED = 1, WHOLE_NODE_USER = 2, WHOLE_NODE_MCS = 4 };
enum { SLURM_DIST_CYCLIC = 1, SLURM_DIST_ARBITRARY = 3, SLURM_DIST_STATE_BASE = 0xffff };
enum { RESERVE_FLAG_MAINT = 1, RESERVE_FLAG_TIME_FLOAT = 2, RESERVE_FLAG_MAGNETIC = 4 };
enum { RESV_CTLD_USER_NOT = 1 };
enum { SLURM_DEPEND_AFTER = 1, SLURM_DEPEND_AFTER_CORRESPOND = 8 };
enum { TRES_ARRAY_CPU, TRES_ARRAY_MEM, TRES_ARRAY_NODE, TRES_ARRAY_BILLING, TRES_COUNT };
enum { SLURMDB_JOB_FLAG_SCHED = 4 };
enum { QOS_FLAG_NO_RESERVE = 16, QOS_FLAG_OVER_PART_QOS = 32, QOS_FLAG_USAGE_FACTOR_SAFE = 64 };
enum { ADMIN_SET_LIMIT = 0xffff };
#define BACKFILL_SCHED UINT64_C(0x10)
#define JOB_MEM_SET UINT64_C(0x20)
#define JOB_MAGNETIC UINT64_C(0x40)

// ---------------------------------------------------------------- lists, bits, memory, texts

typedef struct list {
    void **items;
    int count, room;
} list_t;
typedef struct list_itr list_itr_t;
typedef struct bits bitstr_t;
typedef int64_t bitoff_t;

list_t *mock_list(void);
void mock_append(list_t *list, void *item);
void mock_drop(list_t *list, const void *item);
void mock_list_free(list_t *list);
list_t *list_create(void (*destroy)(void *));
void *list_pop(list_t *list);
int list_count(list_t *list);
list_itr_t *list_iterator_create(list_t *list);
void *list_next(list_itr_t *at);
void list_iterator_destroy(list_itr_t *at);
void *list_find_first(list_t *list, int (*is)(void *, void *), void *key);
int list_for_each_ro(list_t *list, int (*visit)(void *, void *), void *context);
#define FREE_NULL_LIST(list)                                                                       \
    do {                                                                                           \
        if (list)                                                                                  \
            mock_list_free(list);                                                                  \
        list = NULL;                                                                               \
    } while (0)

bitstr_t *bit_alloc(bitoff_t bits);
bitstr_t *bit_copy(bitstr_t *bits);
void bit_free(bitstr_t *bits);
bitoff_t bit_size(bitstr_t *bits);
int bit_test(bitstr_t *bits, bitoff_t bit);
void bit_set(bitstr_t *bits, bitoff_t bit);
void bit_clear(bitstr_t *bits, bitoff_t bit);
void bit_not(bitstr_t *bits);
void bit_or(bitstr_t *bits, bitstr_t *more);
void bit_and(bitstr_t *bits, bitstr_t *others);
int bit_super_set(bitstr_t *small, bitstr_t *large);
int bit_set_count(bitstr_t *bits);
int bit_set_count_range(bitstr_t *bits, bitoff_t from, bitoff_t to);
bitoff_t bit_ffs(bitstr_t *bits);
bitoff_t bit_ffs_from_bit(bitstr_t *bits, bitoff_t from);
#define FREE_NULL_BITMAP(bits)                                                                     \
    do {                                                                                           \
        if (bits)                                                                                  \
            bit_free(bits);                                                                        \
        bits = NULL;                                                                               \
    } while (0)

#define xmalloc(bytes) calloc(1, bytes)
#define xcalloc(count, bytes) calloc(count, bytes)
#define xfree(pointer)                                                                             \
    do {                                                                                           \
        free(pointer);                                                                             \
        pointer = NULL;                                                                            \
    } while (0)
char *xstrdup(const char *text);
char *xstrdup_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int xstrcmp(const char *a, const char *b);
char *xstrcasestr(const char *text, const char *part);

void info(const char *format, ...);
void verbose(const char *format, ...);
void debug(const char *format, ...);
int error(const char *format, ...);

// ---------------------------------------------------------------- records

typedef struct {
    uint32_t weight;
} config_record_t;

typedef struct {
    char *name;
    int index;
    uint16_t cpus_efctv, tpc;
    uint64_t real_memory, mem_spec_limit;
    uint32_t node_state, weight;
    uint32_t owner;
    uint16_t no_share_job_cnt, run_job_cnt, comp_job_cnt, sus_job_cnt, owner_job_cnt, tot_cores;
    uint16_t resume_timeout, suspend_timeout;
    time_t boot_req_time, last_busy;
    config_record_t *config_ptr;
    list_t *gres_list;
} node_record_t;

typedef struct {
    char *name;
    bitstr_t *node_bitmap;
} node_feature_t;

typedef struct {
    bitstr_t *node_bitmap;
} slurmdb_used_limits_t;

typedef struct {
    bitstr_t *grp_node_bitmap;
    list_t *user_limit_list, *acct_limit_list;
} slurmdb_qos_usage_t;

typedef struct {
    uint32_t id;
    char *name;
    slurmdb_qos_usage_t *usage;
    uint64_t flags, max_tres_pj_ctld[TRES_COUNT], max_tres_mins_pj_ctld[TRES_COUNT];
    double limit_factor, usage_factor;
    uint32_t max_wall_pj;
    bool full; // of the mock: accounting admits no job under it
} slurmdb_qos_rec_t;

typedef struct {
    char *name;
    bitstr_t *node_bitmap;
    slurmdb_qos_rec_t *qos_ptr;
    uint32_t min_nodes, max_nodes, max_time, default_time;
    uint16_t state_up, max_share, priority_tier;
    uint32_t flags, max_cpus_per_node, max_cpus_per_socket;
    double *billing_weights;
    // of the mock: what job_limits_check() says of jobs here, and what it makes of their requests
    int reason;
    uint32_t adjusted;
} part_record_t;

typedef struct {
    char *name;
    uint32_t total, last_deficit;
} licenses_t;

typedef struct {
    char *name;
    time_t start_time, end_time;
    uint64_t flags;
    bitstr_t *node_bitmap;
    list_t *license_list;
    uint32_t ctld_flags, resv_id;
    int account_cnt, user_cnt;
    uid_t *user_list;
} slurmctld_resv_t;

typedef struct {
    char *name, *node_list, *partition, *users, *accounts, *licenses;
    time_t start_time, end_time;
} resv_desc_msg_t;

typedef struct {
    char *name;
} reservation_name_msg_t;

typedef struct {
    uint32_t plugin_id;
    char *gres_name;
    void *gres_data;
} gres_state_t;

typedef struct {
    uint64_t gres_cnt_avail;
    bool no_consume;
    uint16_t type_cnt;
    uint64_t *type_cnt_avail;
    char **type_name;
} gres_node_state_t;

typedef struct {
    char *type_name;
    uint64_t gres_per_node, gres_per_socket, gres_per_task, gres_per_job;
    uint32_t node_cnt;
    uint64_t *gres_cnt_node_alloc;
} gres_job_state_t;

typedef struct {
    uint16_t depend_type;
} depend_spec_t;

typedef struct {
    uid_t uid;
} identity_t;

typedef struct {
    uint32_t task_cnt, max_run_tasks, tot_run_tasks;
    bitstr_t *task_id_bitmap;
} job_array_struct_t;

struct job_resources {
    bitstr_t *node_bitmap;
    uint32_t nhosts;
    uint16_t *cpus;
    bitstr_t *core_bitmap;
    uint64_t *memory_allocated;
    uint8_t whole_node;
    uint32_t node_req;
};

enum node_cr_state { NODE_CR_AVAILABLE = 0, NODE_CR_ONE_ROW = 1, NODE_CR_RESERVED = 64000 };

typedef struct slurmdb_assoc_rec slurmdb_assoc_rec_t;

typedef struct {
    bitstr_t *valid_qos, *grp_node_bitmap;
    slurmdb_assoc_rec_t *parent_assoc_ptr;
} slurmdb_assoc_usage_t;

struct slurmdb_assoc_rec {
    char *acct, *user;
    slurmdb_assoc_usage_t *usage;
    uint32_t max_wall_pj;
    uint64_t max_tres_ctld[TRES_COUNT], max_tres_mins_ctld[TRES_COUNT];
};

typedef struct {
    uint16_t sockets_per_node, cores_per_socket, threads_per_core;
    uint16_t ntasks_per_board, ntasks_per_socket, ntasks_per_core;
} multi_core_data_t;

typedef struct {
    multi_core_data_t *mc_ptr;
    uint32_t pn_min_tmp_disk;
    bitstr_t *job_size_bitmap;
    uint8_t overcommit;
    uint16_t *arbitrary_tpn;
    time_t begin_time, submit_time;
    uint16_t contiguous, core_spec, cpus_per_task, orig_cpus_per_task, ntasks_per_node;
    list_t *depend_list, *feature_list, *feature_list_use, *prefer_list;
    bitstr_t *exc_node_bitmap, *req_node_bitmap;
    char *exc_nodes, *req_nodes, *features, *features_use, *prefer, *work_dir;
    uint32_t max_nodes, min_nodes, min_cpus, orig_max_cpus, orig_min_cpus, pn_min_cpus;
    uint32_t orig_pn_min_cpus, num_tasks, task_dist;
    uint64_t pn_min_memory, orig_pn_min_memory;
    uint8_t prolog_running, whole_node, share_res, requeue;
} job_details_t;

typedef struct {
    uint32_t job_id, array_job_id, array_task_id, assoc_id, user_id, qos_id, het_job_id, resv_id;
    slurmctld_resv_t *resv_ptr;
    list_t *resv_list, *qos_list;
    job_array_struct_t *array_recs;
    slurmdb_assoc_rec_t *assoc_ptr;
    slurmdb_qos_rec_t *qos_ptr;
    char *account, *burst_buffer, *licenses, *name, *nodes, *partition, *resv_name, *sched_nodes;
    char *state_desc, *tres_per_node, *tres_per_job, *tres_per_socket, *tres_per_task, *user_name;
    char *admin_comment, *alloc_node, *batch_host, *mcs_label, *system_comment, *wckey;
    uint32_t group_id;
    identity_t *id;
    uint16_t batch_flag, restart_cnt;
    bool best_switch, preempt_in_progress;
    uint64_t bit_flags, *tres_req_cnt, *tres_alloc_cnt;
    time_t deadline, end_time, last_sched_eval, start_time;
    job_details_t *details;
    list_t *gres_list_alloc, *gres_list_req, *license_list, *part_ptr_list, *step_list;
    struct job_resources *job_resrcs;
    uint32_t job_state, node_cnt, priority, req_switch, state_reason, state_reason_prev_db;
    uint32_t time_limit, time_min, total_cpus, wait4switch, spank_job_env_size;
    char **spank_job_env;
    struct {
        uint16_t qos, time, *tres;
    } limit_set;
    bitstr_t *node_bitmap, *node_bitmap_cg;
    part_record_t *part_ptr;
    // of the mock: what Slurm's tests say of this job
    struct {
        int waits_for; // job_independent() says no, with this reason; 0: it says yes
        bool limited, too_late, no_account, never;
        uint64_t version, shape; // free for tests
    } mock;
} job_record_t;

// ---------------------------------------------------------------- slurmctld

typedef struct {
    int conf, job, node, part, fed;
} slurmctld_lock_t;

typedef struct {
    int assoc, file, qos, res, tres, user, wckey;
} assoc_mgr_lock_t;

typedef struct {
    job_record_t *job_ptr;
} job_node_select_t;

typedef struct {
    char *account, *admin_comment, *alloc_node, *dependency, *features, *mcs_label, *name;
    char *partition, *qos, *req_nodes, *reservation, *wckey, *work_dir;
    uint32_t job_id, group_id, user_id, max_nodes, min_nodes, min_cpus, num_tasks, time_limit;
    uint16_t core_spec, cpus_per_task, ntasks_per_node, pn_min_cpus, shared;
    uint64_t pn_min_memory;
    identity_t *id;
} job_desc_msg_t;

typedef struct {
    void *data;
} slurm_msg_t;

typedef struct will_run_response_msg will_run_response_msg_t;
#define SLURM_PROTOCOL_VERSION 1

typedef struct {
    job_record_t *job_ptr;
    list_t *job_queue;
    part_record_t *part_ptr;
    uint32_t prio;
} job_queue_req_t;

typedef struct {
    slurmctld_resv_t *resv_ptr;
} job_queue_rec_t;

typedef struct {
    char *cluster_name, *plugindir, *resume_program, *sched_params, *select_type;
    char *suspend_program, *suspend_exc_nodes;
    uint16_t resume_timeout, suspend_timeout;
    uint32_t prolog_flags;
    char *state_save_location;
    uint16_t msg_timeout, select_type_param;
    uint64_t priority_flags;
    uid_t slurm_user_id;
    time_t last_update;
} slurm_conf_t;

typedef struct {
    bool scheduling_disabled;
    time_t shutdown_time;
} slurmctld_config_t;

typedef struct {
    uint32_t jobs_submitted, jobs_completed, jobs_canceled, jobs_failed;
} diag_stats_t;

extern slurm_conf_t slurm_conf;
extern slurmctld_config_t slurmctld_config;
extern diag_stats_t slurmctld_diag_stats;
extern list_t *job_list, *part_list, *resv_list, *active_feature_list, *cluster_license_list;
extern bitstr_t *avail_node_bitmap, *cg_node_bitmap, *idle_node_bitmap, *share_node_bitmap;
extern bitstr_t *exc_node_bitmap;
extern bool power_save_enabled;
extern node_record_t **node_record_table_ptr;
extern int node_record_count, slurmctld_tres_cnt, g_qos_count;
extern char **assoc_mgr_tres_name_array;
extern uint16_t accounting_enforce;
extern time_t last_job_update, last_node_update, last_part_update, last_resv_update,
    last_license_update;
extern void *acct_db_conn;

typedef struct {
    char *node_names;
    uint32_t node_state;
} update_node_msg_t;

void slurm_init_update_node_msg(update_node_msg_t *message);
int update_node(update_node_msg_t *message, uid_t user);

void lock_slurmctld(slurmctld_lock_t wanted);
void unlock_slurmctld(slurmctld_lock_t held);
void assoc_mgr_lock(assoc_mgr_lock_t *locks);
void assoc_mgr_unlock(assoc_mgr_lock_t *locks);
void schedule_node_save(void), schedule_job_save(void);
int dump_all_job_state(void);
int schedule(bool full_queue);

job_record_t *find_job_record(uint32_t id);
job_record_t *find_job_array_rec(uint32_t array, uint32_t task);
part_record_t *find_part_record(char *name);
node_record_t *find_node_record(char *name);
int node_name2bitmap(char *names, bool best_effort, bitstr_t **nodes, void *invalid);
char *bitmap2node_name(bitstr_t *nodes);
char *node_state_flag_string(uint32_t state);
const char *node_state_base_string(uint32_t state);

bool job_independent(job_record_t *job);
int job_limits_check(job_record_t **job, bool check_min_time);
bool deadline_ok(job_record_t *job, char *who);
int assoc_mgr_validate_assoc_id(void *connection, uint32_t id, int enforce);
void job_fail_qos(job_record_t *job, const char *who, bool assoc_locked);
void set_job_failed_assoc_qos_ptr(job_record_t *job);
void acct_policy_handle_accrue_time(job_record_t *job, bool assoc_locked);
bool acct_policy_job_runnable_pre_select(job_record_t *job, bool assoc_locked);
slurmdb_used_limits_t *acct_policy_get_user_used_limits(list_t **limits, uint32_t user_id);
slurmdb_used_limits_t *acct_policy_get_acct_used_limits(list_t **limits, char *account);
uint32_t acct_policy_get_max_nodes(job_record_t *job, uint32_t *reason);
void acct_policy_set_qos_order(job_record_t *job, slurmdb_qos_rec_t **first,
                               slurmdb_qos_rec_t **second);
bool acct_policy_job_runnable_post_select(job_record_t *job, uint64_t *tres, bool assoc_locked);
double assoc_mgr_tres_weighted(uint64_t *tres, double *weights, uint64_t flags, bool no_mem);
uint64_t job_get_tres_mem(struct job_resources *resources, uint64_t pn_min_memory, uint32_t cpus,
                          uint32_t nodes, part_record_t *part, list_t *gres, bool by_user,
                          uint16_t sockets, uint32_t tasks);
uint16_t job_get_sockets_per_node(job_record_t *job);
void gres_stepmgr_set_job_tres_cnt(list_t *gres, uint32_t nodes, uint64_t *tres, bool locked);
int bb_g_job_test_stage_in(job_record_t *job, bool test_only);
int bb_g_job_try_stage_in(void);
int num_pending_job_array_tasks(uint32_t array);
job_record_t *job_array_split(job_record_t *job, bool list_add);
job_record_t *job_array_post_sched(job_record_t *job, bool list_add);
void job_state_set(job_record_t *job, uint32_t state);
int job_requeue(uid_t uid, uint32_t job_id, slurm_msg_t *msg, bool preempt, uint32_t flags);
bool job_state_reason_check(int reason, int kind);
const char *job_state_reason_string(int reason);
const char *slurm_strerror(int code);
int select_nodes(job_node_select_t *select, bool test_only, bool defer, uint32_t flag);
int fed_mgr_job_lock(job_record_t *job);
int fed_mgr_job_unlock(job_record_t *job);
int fed_mgr_job_start(job_record_t *job, time_t start);
void srun_allocate(job_record_t *job);
void launch_job(job_record_t *job);
void rebuild_job_part_list(job_record_t *job);
void slurm_init_resv_desc_msg(resv_desc_msg_t *message);
void slurm_free_resv_desc_msg(resv_desc_msg_t *message);
int create_resv(resv_desc_msg_t *wanted, char **problem);
int delete_resv(reservation_name_msg_t *wanted);
void job_resv_append_magnetic(job_queue_req_t *asked);
void job_resv_clear_magnetic_flag(job_record_t *job);
bool permit_job_expansion(void);
bool permit_job_shrink(void);
identity_t *copy_identity(identity_t *id);
void slurm_init_job_desc_msg(job_desc_msg_t *message);
void slurm_free_job_desc_msg(job_desc_msg_t *message);
void slurm_msg_t_init(slurm_msg_t *message);
int job_allocate(job_desc_msg_t *asked, int immediate, int will_run, will_run_response_msg_t **resp,
                 int allocate, uid_t user, bool cron, job_record_t **job, char **problem,
                 uint16_t version);
int job_signal(job_record_t *job, uint16_t signal, uint16_t flags, uid_t user, bool preempt);
int update_job(slurm_msg_t *message, uid_t user, bool answer);
int select_g_select_nodeinfo_set_all(void);

// ---------------------------------------------------------------- of the mock

typedef struct {
    // Both clocks, where they are wrapped (mock_clock.c), and what each look at a record takes.
    int64_t now_us, look_us;
    int64_t wall_us; // how far the wall clock was set
    // What is held, and for how long it ever was. For one time of a lock: the looks.
    bool locked;
    slurmctld_lock_t locks;
    int64_t locked_us, longest_us;
    unsigned lock_count, assoc_locked;
    // What select_nodes() says, and whether it splits an array even then; what it was asked.
    int select_code;
    uint32_t select_reason;          // of a refusal; 0: WAIT_RESOURCES
    const char *select_desc;         // likewise; NULL: "of the narrowed request"
    const slurmctld_resv_t *only_in; // where select_nodes() finds nodes; NULL: anywhere
    const char *only_with;           // with which features it does; NULL: with any
    bool split_anyway;
    unsigned scans, selects, started, launched, allocated, saves, dumps, schedules, reservations;
    uint32_t select_nodes, select_required, select_time_limit, select_switch, select_dist;
    char select_names[256];
    uint32_t select_tasks[64];
    uint32_t select_num_tasks, select_cpus; // what counts all nodes together
    bool select_arbitrary, select_among;
    part_record_t *select_part;
    bool other_cluster; // of a federation has the job
    bitstr_t *group;    // nodes of the group that every job is of; NULL: it has no limit
    uint64_t group_max;
    uint32_t max_nodes;    // that limits in accounting let a job have; 0: any number
    uint32_t group_reason; // 0: WAIT_ASSOC_GRP_NODE
    slurmdb_used_limits_t user_limits, account_limits;
    unsigned fed_locks;
    // What becomes of a resize: codes of job_allocate() and update_job(); whether the update does
    // nothing and says it is done; how many helpers were made and cancelled.
    int allocate_code, update_code;
    const char *allocate_words;
    bool update_does_nothing, starts_at_once;
    unsigned helpers, cancelled;
    int requeue_code; // of job_requeue()
    uint64_t billing; // of each node of a job that is started
    bool cores_noted; // of removed nodes, which select/cons_tres has not given back yet
    uint32_t next_id;
    // Called when locks have been given in the midst of a batch, and on every start.
    void (*between)(void);
    void (*on_start)(job_record_t *job);
    // The log: number of lines, the last ones, and whether any held a sign that is not text.
    unsigned errors, infos, verboses, debugs;
    char last_error[600], last_info[600];
} mock_t;

extern mock_t mock;

struct bits {
    bitoff_t size;
    bool bit[];
};

// An empty cluster of nodes n1, n2, ... in the partitions "main" (all) and "half" (the first half).
void mock_begin(int nodes, int cpus);
void mock_end(void);

// A waiting batch job of one task on one node; in the table.
job_record_t *mock_job(uint32_t id);
// The same for the unstarted tasks 0, 1, ... of an array.
job_record_t *mock_array(uint32_t id, uint32_t tasks);
// Takes it out of the table and frees it.
void mock_forget(job_record_t *job);
// Puts it on a node, running.
void mock_run(job_record_t *job, int node, uint16_t cpus);
// One that lasts for ten minutes; the name stays the caller's.
slurmctld_resv_t *mock_reservation(char *name, uint64_t flags);

// Ends the suite with a line.
__attribute__((format(printf, 1, 2), noreturn)) void mock_wrong(const char *format, ...);
// Ends it if these locks are not held: 1 to read, 2 to write; 0: any. A look takes its time.
void mock_needs(const char *what, int job, int node);
// Ends the suite with a line if a lock is held, or was not given back.
void mock_nothing_held(const char *where);

#endif
