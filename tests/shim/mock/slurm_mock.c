// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurm_mock.h"

#include <ctype.h>
#include <stdarg.h>

mock_t mock;
slurm_conf_t slurm_conf;
slurmctld_config_t slurmctld_config;
diag_stats_t slurmctld_diag_stats;
list_t *job_list, *part_list, *resv_list, *active_feature_list, *cluster_license_list;
bitstr_t *exc_node_bitmap;
bool power_save_enabled;
bitstr_t *avail_node_bitmap, *cg_node_bitmap, *idle_node_bitmap, *share_node_bitmap;
node_record_t **node_record_table_ptr;
int node_record_count, slurmctld_tres_cnt = TRES_COUNT, g_qos_count = 2;
static char *kinds[] = {"cpu", "mem", "node", "billing"};
char **assoc_mgr_tres_name_array = kinds;
uint16_t accounting_enforce;
time_t last_job_update, last_node_update, last_part_update, last_resv_update, last_license_update;
void *acct_db_conn;

void mock_wrong(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("mock of Slurm: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

// ---------------------------------------------------------------- lists

struct list_itr {
    list_t *list;
    int at;
};

list_t *mock_list(void) {
    return calloc(1, sizeof(list_t));
}

void mock_append(list_t *list, void *item) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 8;
        list->items = realloc(list->items, (size_t)list->room * sizeof(void *));
    }
    list->items[list->count++] = item;
}

void mock_drop(list_t *list, const void *item) {
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->items[i] != item)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

void mock_list_free(list_t *list) {
    if (list)
        free(list->items);
    free(list);
}

list_t *list_create(void (*destroy)(void *)) {
    (void)destroy;
    return mock_list();
}

void *list_pop(list_t *list) {
    if (!list->count)
        return NULL;
    void *first = list->items[0];
    mock_drop(list, first);
    return first;
}

int list_count(list_t *list) {
    return list->count;
}

list_itr_t *list_iterator_create(list_t *list) {
    list_itr_t *at = calloc(1, sizeof(*at));
    at->list = list;
    return at;
}

void *list_next(list_itr_t *at) {
    return at->at < at->list->count ? at->list->items[at->at++] : NULL;
}

void list_iterator_destroy(list_itr_t *at) {
    free(at);
}

void *list_find_first(list_t *list, int (*is)(void *, void *), void *key) {
    for (int i = 0; i < list->count; i++) {
        if (is(list->items[i], key))
            return list->items[i];
    }
    return NULL;
}

int list_for_each_ro(list_t *list, int (*visit)(void *, void *), void *context) {
    int visited = 0;
    mock.scans += list == job_list;
    for (; visited < list->count && visit(list->items[visited], context) >= 0; visited++)
        ;
    return visited;
}

// ---------------------------------------------------------------- bits

bitstr_t *bit_alloc(bitoff_t size) {
    bitstr_t *bits = calloc(1, sizeof(*bits) + (size_t)size);
    bits->size = size;
    return bits;
}

bitstr_t *bit_copy(bitstr_t *bits) {
    bitstr_t *copy = bit_alloc(bits->size);
    memcpy(copy->bit, bits->bit, (size_t)bits->size);
    return copy;
}

void bit_free(bitstr_t *bits) {
    free(bits);
}

bitoff_t bit_size(bitstr_t *bits) {
    return bits->size;
}

static void inside(const bitstr_t *bits, bitoff_t bit) {
    if (bit < 0 || bit >= bits->size)
        mock_wrong("bit %" PRId64 " of %" PRId64, bit, bits->size);
}

int bit_test(bitstr_t *bits, bitoff_t bit) {
    inside(bits, bit);
    return bits->bit[bit];
}

void bit_set(bitstr_t *bits, bitoff_t bit) {
    inside(bits, bit);
    bits->bit[bit] = true;
}

void bit_clear(bitstr_t *bits, bitoff_t bit) {
    inside(bits, bit);
    bits->bit[bit] = false;
}

void bit_not(bitstr_t *bits) {
    for (bitoff_t i = 0; i < bits->size; i++)
        bits->bit[i] = !bits->bit[i];
}

static void alike(const bitstr_t *a, const bitstr_t *b) {
    if (a->size != b->size)
        mock_wrong("bitmaps of %" PRId64 " and %" PRId64 " bits", a->size, b->size);
}

void bit_or(bitstr_t *bits, bitstr_t *more) {
    alike(bits, more);
    for (bitoff_t i = 0; i < bits->size; i++)
        bits->bit[i] |= more->bit[i];
}

void bit_and(bitstr_t *bits, bitstr_t *others) {
    alike(bits, others);
    for (bitoff_t i = 0; i < bits->size; i++)
        bits->bit[i] &= others->bit[i];
}

int bit_super_set(bitstr_t *small, bitstr_t *large) {
    alike(small, large);
    for (bitoff_t i = 0; i < small->size; i++) {
        if (small->bit[i] && !large->bit[i])
            return 0;
    }
    return 1;
}

int bit_set_count_range(bitstr_t *bits, bitoff_t from, bitoff_t to) {
    int count = 0;
    for (bitoff_t i = from; i < to && i < bits->size; i++)
        count += bits->bit[i];
    return count;
}

int bit_set_count(bitstr_t *bits) {
    return bit_set_count_range(bits, 0, bits->size);
}

bitoff_t bit_ffs_from_bit(bitstr_t *bits, bitoff_t from) {
    for (; from < bits->size; from++) {
        if (bits->bit[from])
            return from;
    }
    return -1;
}

bitoff_t bit_ffs(bitstr_t *bits) {
    return bit_ffs_from_bit(bits, 0);
}

// ---------------------------------------------------------------- texts

char *xstrdup(const char *text) {
    return text ? strdup(text) : NULL;
}

char *xstrdup_printf(const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

int xstrcmp(const char *a, const char *b) {
    return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

char *xstrcasestr(const char *text, const char *part) {
    return text && part ? strcasestr(text, part) : NULL;
}

// A line that somebody could forge another with is a fault of the plugin.
static void note(unsigned *count, char *last, size_t bytes, const char *format, va_list args) {
    char line[2048];
    vsnprintf(line, sizeof(line), format, args);
    for (const char *sign = line; *sign; sign++) {
        if (*sign < ' ' || *sign > '~')
            mock_wrong("a line of the log with the sign 0x%02x: %s", (unsigned char)*sign, line);
    }
    ++*count;
    if (last)
        snprintf(last, bytes, "%s", line);
}

#define LOG(name, result, count, last, bytes, value)                                               \
    result name(const char *format, ...) {                                                         \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        note(count, last, bytes, format, args);                                                    \
        va_end(args);                                                                              \
        return value;                                                                              \
    }
#define NOTHING
LOG(info, void, &mock.infos, mock.last_info, sizeof(mock.last_info), NOTHING)
LOG(verbose, void, &mock.verboses, NULL, 0, NOTHING)
LOG(debug, void, &mock.debugs, NULL, 0, NOTHING)
LOG(error, int, &mock.errors, mock.last_error, sizeof(mock.last_error), 0)

// ---------------------------------------------------------------- locks

void mock_nothing_held(const char *where) {
    if (mock.locked)
        mock_wrong("Slurm's locks are held: %s", where);
    if (mock.assoc_locked)
        mock_wrong("the locks of associations are held: %s", where);
}

static int64_t mock_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void lock_slurmctld(slurmctld_lock_t wanted) {
    mock_nothing_held("and taken again");
    mock.locked = true;
    mock.locks = wanted;
    mock.locked_us = mock_now_us();
    mock.lock_count++;
}

void unlock_slurmctld(slurmctld_lock_t held) {
    if (!mock.locked)
        mock_wrong("locks are given that are not held");
    if (memcmp(&held, &mock.locks, sizeof(held)) != 0)
        mock_wrong("other locks are given than were taken");
    if (mock.assoc_locked)
        mock_wrong("the locks of associations outlive Slurm's");
    mock.locked = false;
    int64_t us = mock_now_us() - mock.locked_us;
    mock.longest_us = MAX(mock.longest_us, us);
}

// A look at a record takes its time.
void mock_needs(const char *what, int job, int node) {
    if (!mock.locked || mock.locks.job < job || mock.locks.node < node)
        mock_wrong("%s without its lock", what);
    mock.now_us += mock.look_us;
}

void assoc_mgr_lock(assoc_mgr_lock_t *locks) {
    (void)locks;
    if (mock.assoc_locked++)
        mock_wrong("the locks of associations are taken twice");
}

void assoc_mgr_unlock(assoc_mgr_lock_t *locks) {
    (void)locks;
    if (mock.assoc_locked-- != 1)
        mock_wrong("the locks of associations are given twice");
}

void schedule_node_save(void) {
    mock_nothing_held("schedule_node_save");
    mock.saves++;
}

void schedule_job_save(void) {
    mock_nothing_held("schedule_job_save");
    mock.saves++;
}

int dump_all_job_state(void) {
    mock_nothing_held("dump_all_job_state");
    mock.dumps++;
    return 0;
}

int schedule(bool full_queue) {
    (void)full_queue;
    mock_nothing_held("schedule");
    mock.schedules++;
    return 0;
}

// ---------------------------------------------------------------- finding

job_record_t *find_job_record(uint32_t id) {
    mock_needs("find_job_record", READ_LOCK, NO_LOCK);
    for (int i = 0; i < job_list->count; i++) {
        job_record_t *job = job_list->items[i];
        if (job->job_id == id)
            return job;
    }
    return NULL;
}

job_record_t *find_job_array_rec(uint32_t array, uint32_t task) {
    mock_needs("find_job_array_rec", READ_LOCK, NO_LOCK);
    job_record_t *rest = NULL;
    for (int i = 0; i < job_list->count; i++) {
        job_record_t *job = job_list->items[i];
        if (job->array_job_id != array)
            continue;
        if (job->array_task_id == task)
            return job;
        if (job->array_task_id == NO_VAL)
            rest = job;
    }
    return rest;
}

part_record_t *find_part_record(char *name) {
    for (int i = 0; i < part_list->count; i++) {
        part_record_t *part = part_list->items[i];
        if (!xstrcmp(part->name, name))
            return part;
    }
    return NULL;
}

node_record_t *find_node_record(char *name) {
    mock_needs("find_node_record", NO_LOCK, READ_LOCK);
    for (int i = 0; i < node_record_count; i++) {
        if (!xstrcmp(node_record_table_ptr[i]->name, name))
            return node_record_table_ptr[i];
    }
    return NULL;
}

// Takes "n1,n[2-4,7]"; as Slurm's parser, it writes every name out.
int node_name2bitmap(char *names, bool best_effort, bitstr_t **nodes, void *invalid) {
    (void)best_effort;
    (void)invalid;
    mock_needs("node_name2bitmap", NO_LOCK, READ_LOCK);
    *nodes = bit_alloc(node_record_count);
    unsigned written = 0;
    for (char *at = names; *at;) {
        bool many = false;
        if (*at++ != 'n')
            return SLURM_ERROR;
        if (*at == '[') {
            many = true;
            at++;
        }
        do {
            if (!isdigit((unsigned char)*at))
                return SLURM_ERROR;
            unsigned long first = strtoul(at, &at, 10), last = first;
            if (*at == '-')
                last = strtoul(at + 1, &at, 10);
            for (unsigned long node = first; node <= last; node++) {
                if (++written > 100000)
                    mock_wrong("Slurm has to write out %s", names);
                if (node < 1 || node > (unsigned long)node_record_count)
                    return SLURM_ERROR;
                bit_set(*nodes, (bitoff_t)node - 1);
            }
        } while (many && *at == ',' && at++);
        if (many && *at++ != ']')
            return SLURM_ERROR;
        if (*at && *at++ != ',')
            return SLURM_ERROR;
    }
    return SLURM_SUCCESS;
}

char *bitmap2node_name(bitstr_t *nodes) {
    size_t length = 0;
    char *names = calloc(1, 12 * (size_t)bit_set_count(nodes) + 1);
    for (bitoff_t i = 0; i < nodes->size; i++) {
        if (nodes->bit[i])
            length += (size_t)sprintf(names + length, "%sn%" PRId64, length ? "," : "", i + 1);
    }
    return names;
}

char *node_state_flag_string(uint32_t state) {
    return state & NODE_STATE_DRAIN ? xstrdup("+DRAIN") : NULL;
}

const char *node_state_base_string(uint32_t state) {
    return (state & NODE_STATE_BASE) == NODE_STATE_DOWN ? "DOWN" : "UNKNOWN";
}
