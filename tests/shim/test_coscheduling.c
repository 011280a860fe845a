// SPDX-License-Identifier: GPL-2.0-or-later
// Two jobs on the same CPUs, against the mock of slurmctld: who consents, who is refused, and what
// a job is like when it waits again.
#include "rules/note.h"
#include "rules/unmodelled.h"
#include "sharing.h"

static void expect_refused(job_record_t *guest, const job_record_t *host, pb_outcome_t outcome,
                           const char *words) {
    image_t image = image_of(guest);
    unsigned selects = mock.selects;
    start_guest(guest, host, "n2");
    expect_result(0, outcome, words);
    EXPECT_NUMBER(mock.selects, selects); // Slurm was not even asked
    expect_same(&image, guest);
}

// ---------------------------------------------------------------- pairs

static void a_guest_starts_on_its_hosts_nodes(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    EXPECT_NUMBER(host->details->share_res, 1);
    EXPECT_NUMBER(host->job_resrcs->node_req, NODE_CR_AVAILABLE);
    EXPECT_NUMBER(coscheduling_of(host), COSCHEDULE_HOST);
    EXPECT_NUMBER(coscheduling_told(host), COSCHEDULE_HOST);
    EXPECT_NUMBER(coscheduling_slowdown(host), 75);
    EXPECT(!host_of(host));
    job_record_t *guest = guest_of(2, host);
    EXPECT_TEXT(guest->nodes, "n2");
    EXPECT(host_of(guest) == host);
    end();
}

static void guests_start_on_some_nodes_of_their_host(void) {
    begin_shared();
    job_record_t *host = wide_host(1);
    job_record_t *first = consenting(2, "guest"), *second = consenting(3, "guest");
    start_guest(first, host, "n2");
    expect_result(0, APPLIED, "");
    fill(first);
    expect_refused(consenting(4, "guest"), host, BUSY, "not alone on these nodes");
    start_guest(second, host, "n4");
    expect_result(0, BUSY, "not the host's");
    start_guest(second, host, "n3");
    expect_result(0, APPLIED, "");
    fill(second);
    EXPECT(host_of(first) == host && host_of(second) == host);
    // On the node without a guest another job may not start either: the host holds all its CPUs.
    job_record_t *wide = consenting(5, "guest");
    wide->details->min_nodes = wide->details->max_nodes = 2;
    wide->details->num_tasks = wide->details->min_cpus = 8;
    start_guest(wide, host, "n[1-2]");
    expect_result(0, BUSY, "not alone on these nodes");
    // When the host ends they are ordinary jobs on their nodes.
    host->job_state = JOB_COMPLETE;
    EXPECT(!host_of(first) && !host_of(second));
    end();
}

static void both_are_reported(void) {
    begin_shared();
    arena_t arena = {0};
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = guest_of(2, host);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    EXPECT_TEXT(job_message(&arena, host, know(host), 0)->host_job_id, "");
    pb_job_t *message = job_message(&arena, guest, know(guest), 0);
    EXPECT_TEXT(message->host_job_id, "1");
    EXPECT_NUMBER(message->coschedule, COSCHEDULE_GUEST);
    EXPECT_NUMBER(message->max_slowdown_permille, 75);
    EXPECT(message->requeue);
    uint64_t print = job_fingerprint(guest, know(guest), 0);
    host->job_state = JOB_COMPLETE;
    EXPECT_TEXT(job_message(&arena, guest, know(guest), 0)->host_job_id, "");
    EXPECT(job_fingerprint(guest, know(guest), 0) != print);
    lock_scope_give(&locks);
    arena_reset(&arena);
    end();
}

static void only_jobs_that_hold_all_cpus_of_idle_nodes_become_hosts(void) {
    begin_shared();
    job_record_t *small = consenting(1, "host");
    small->details->min_cpus = 3;
    start(small, "n1");
    job_record_t *silent = consenting(2, NULL);
    start(silent, "n2");
    job_record_t *exclusive = consenting(3, "both");
    exclusive->details->whole_node = WHOLE_NODE_REQUIRED;
    start(exclusive, "n3");
    job_record_t *beside = consenting(4, "both");
    node_record_table_ptr[3]->run_job_cnt = 1;
    start(beside, "n4");
    EXPECT(apply());
    job_record_t *jobs[] = {small, silent, exclusive, beside};
    for (int i = 0; i < 4; i++) {
        expect_result((size_t)i, APPLIED, "");
        EXPECT_NUMBER(jobs[i]->details->share_res, UNSTATED);
        EXPECT_NUMBER(coscheduling_of(jobs[i]), COSCHEDULE_NEVER);
        EXPECT_NUMBER(coscheduling_told(jobs[i]), COSCHEDULE_NEVER);
        EXPECT(!note_text(jobs[i], "SPANK_SCHEDBRIDGE_SHARES="));
    }
    end();
}

static void the_partition_must_let_jobs_share(void) {
    static const uint16_t others[] = {0, 1, 3, SHARED_FORCE | 1, SHARED_FORCE | 2};
    for (int i = 0; i < 5; i++) {
        begin_shared();
        part_record_t *part = part_list->items[0];
        part->max_share = others[i];
        EXPECT(!coscheduling_is_shared(part));
        job_record_t *host = consenting(1, "host");
        start(host, "n2");
        EXPECT(apply());
        fill(host);
        EXPECT_NUMBER(host->details->share_res, UNSTATED);
        expect_refused(consenting(2, "guest"), host, INVALID, "OverSubscribe=YES:2");
        end();
    }
}

static void who_is_no_guest(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    expect_refused(consenting(2, NULL), host, INVALID, "does not allow it to run as a guest");
    expect_refused(consenting(3, "host"), host, INVALID, "does not allow it to run as a guest");
    expect_refused(consenting(4, "never"), host, INVALID, "does not allow it to run as a guest");
    expect_refused(consenting(5, "forged"), host, INVALID, "does not allow it to run as a guest");
    job_record_t *job = consenting(6, "guest");
    job->details->whole_node = WHOLE_NODE_REQUIRED;
    expect_refused(job, host, INVALID, "neither --exclusive nor GRES");
    job = consenting(7, "guest");
    job->details->share_res = 0;
    expect_refused(job, host, INVALID, "neither --exclusive nor GRES");
    job = consenting(8, "guest");
    job->details->requeue = 0;
    expect_refused(job, host, INVALID, "may be requeued");
    job = consenting(9, "guest");
    job->batch_flag = 0;
    expect_refused(job, host, INVALID, "may be requeued");
    job = consenting(10, "guest");
    job->details->whole_node = WHOLE_NODE_MCS; // --exclusive=mcs
    expect_refused(job, host, INVALID, "neither --exclusive nor GRES");
    job = consenting(11, "guest");
    job->details->whole_node = WHOLE_NODE_USER; // --exclusive=user, where users do not meet anyway
    start_guest(job, host, "n2");
    expect_result(0, APPLIED, "");
    end();
}

static void who_is_no_host(void) {
    begin_shared();
    job_record_t *guest = consenting(1, "both");
    expect_refused(guest, NULL, BUSY, "no longer running");
    job_record_t *host = host_on(2, "n2");
    host->job_resrcs->cpus[0] = 3;
    expect_refused(guest, host, INVALID, "does not allow a guest, or cannot");
    fill(host);
    host->job_resrcs->node_req = NODE_CR_ONE_ROW; // started in fallback, say
    expect_refused(guest, host, INVALID, "does not allow a guest, or cannot");
    host->job_resrcs->node_req = NODE_CR_AVAILABLE;
    char note[100]; // without it, Slurm has started the job, and keeps nobody off its nodes
    snprintf(note, sizeof(note), "%s", note_text(host, "SPANK_SCHEDBRIDGE_SHARES="));
    note_remove(host, "SPANK_SCHEDBRIDGE_SHARES=");
    expect_refused(guest, host, INVALID, "does not allow a guest, or cannot");
    note_write(host, "SPANK_SCHEDBRIDGE_SHARES=", note);
    host->job_state = JOB_RUNNING | JOB_COMPLETING;
    expect_refused(guest, host, BUSY, "no longer running");
    host->job_state = JOB_RUNNING;
    node_record_table_ptr[1]->comp_job_cnt = 1;
    expect_refused(guest, host, BUSY, "not alone on these nodes");
    node_record_table_ptr[1]->comp_job_cnt = 0;
    start_guest(guest, host, "n3");
    expect_result(0, BUSY, "not the host's");
    job_record_t *other = host_on(3, "n4");
    other->part_ptr = part_list->items[1];
    expect_refused(guest, other, INVALID, "not in partition main");
    end();
}

static void a_third_job_is_refused(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = consenting(2, "both");
    start_guest(guest, host, "n2");
    expect_result(0, APPLIED, "");
    fill(guest);
    expect_refused(consenting(3, "guest"), host, BUSY, "not alone on these nodes");
    expect_refused(consenting(4, "guest"), guest, INVALID, "a guest itself");
    job_record_t *third = consenting(5, NULL);
    third->details->share_res = 1; // --oversubscribe
    start(third, "n2");
    EXPECT(apply());
    expect_result(0, BUSY, "two jobs share");
    start(third, "n3");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    end();
}

// It is looked for only where two jobs run and may share: the search visits all jobs.
static void nobody_searches_for_pairs_where_none_can_be(void) {
    begin_shared();
    part_record_t *main = part_list->items[0], *other = part_list->items[1];
    job_record_t *job = consenting(1, NULL);
    job->details->share_res = 1;
    start(job, "n3");
    unsigned scans = mock.scans;
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(mock.scans, scans); // the node was idle
    main->max_share = SHARED_FORCE | 4;
    other->max_share = 1;
    node_record_table_ptr[2]->run_job_cnt = 3;
    start(consenting(2, NULL), "n3");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(mock.scans, scans); // nobody can be a guest there
    end();
}

// ---------------------------------------------------------------- whose nodes these are

static uint32_t owner(int node) {
    return node_record_table_ptr[node]->owner;
}

static void expect_others_kept_off(uint32_t id, uint32_t user) {
    job_record_t *stranger = consenting(id, NULL);
    stranger->user_id = user;
    bitstr_t *nodes = bit_alloc(8);
    bit_set(nodes, 1);
    EXPECT(mock_owned(stranger, nodes));
    bit_free(nodes);
    stranger->job_state = JOB_CANCELLED;
}

static void slurm_keeps_other_users_off_nodes_that_are_shared(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    EXPECT_NUMBER(host->details->whole_node, WHOLE_NODE_USER);
    EXPECT_NUMBER(owner(1), host->user_id);
    expect_others_kept_off(3, host->user_id + 1);
    job_record_t *guest = guest_of(2, host);
    EXPECT_NUMBER(node_record_table_ptr[1]->owner_job_cnt, 2);
    expect_others_kept_off(4, host->user_id + 1);
    EXPECT_NUMBER(coscheduling_of(host), COSCHEDULE_HOST); // it did not ask for that itself
    finish(host);
    expect_others_kept_off(5, host->user_id + 1);
    finish(guest);
    EXPECT_NUMBER(owner(1), NO_VAL);
    end();
}

static void a_pair_of_two_users_lets_nobody_in(void) {
    for (int host_first = 0; host_first < 2; host_first++) {
        begin_shared();
        settings.coschedule_scope = COSCHEDULE_ALL;
        coscheduling_configure(&settings);
        job_record_t *host = host_on(1, "n2"), *guest = consenting(2, "guest");
        guest->user_id = host->user_id + 1;
        mock.select_code = ESLURM_NODES_BUSY;
        start_guest(guest, host, "n2");
        expect_result(0, BUSY, "");
        EXPECT_NUMBER(owner(1), host->user_id); // as it was
        EXPECT_NUMBER(guest->details->whole_node, 0);
        mock.select_code = 0;
        start_guest(guest, host, "n2");
        expect_result(0, APPLIED, "");
        fill(guest);
        EXPECT(host_of(guest) == host);
        for (uint32_t user = 0; user < 3; user++)
            expect_others_kept_off(3 + user, host->user_id + user);
        finish(host_first ? host : guest);
        for (uint32_t user = 0; user < 3; user++)
            expect_others_kept_off(6 + user, host->user_id + user);
        finish(host_first ? guest : host);
        EXPECT_NUMBER(owner(1), NO_VAL);
        end();
    }
}

static void a_job_for_its_user_alone_meets_no_other(void) {
    begin_shared();
    settings.coschedule_scope = COSCHEDULE_ALL;
    coscheduling_configure(&settings);
    job_record_t *host = host_on(1, "n2"), *guest = consenting(2, "both");
    guest->details->whole_node = WHOLE_NODE_USER; // --exclusive=user
    EXPECT_NUMBER(coscheduling_of(guest), COSCHEDULE_NEVER);
    expect_refused(guest, host, INVALID, "neither --exclusive nor GRES");
    end();
}

static void a_guest_is_nobodys_host_until_its_own_is_gone(void) {
    begin_shared();
    job_record_t *first = host_on(1, "n2");
    job_record_t *second = consenting(2, "both");
    start_guest(second, first, "n2");
    expect_result(0, APPLIED, "");
    fill(second);
    // Though nobody else is counted there, and the first one cannot be a host any more.
    node_record_table_ptr[1]->run_job_cnt = 1;
    expect_refused(consenting(3, "guest"), second, INVALID, "a guest itself");
    node_record_table_ptr[1]->run_job_cnt = 2;
    // The first one is requeued, and comes back as the guest of the second.
    mock_idle(first);
    first->job_state = JOB_PENDING;
    xfree(first->spank_job_env[0]);
    first->spank_job_env[0] = xstrdup(OPTION "coschedule=both");
    start_guest(first, second, "n2");
    expect_result(0, APPLIED, "");
    fill(first);
    EXPECT(host_of(first) == second);
    EXPECT(!host_of(second));
    // A note that makes a chain makes no pair.
    note_write(second, "SPANK_SCHEDBRIDGE_SHARES=", "1:254:0");
    EXPECT(!host_of(first) || !host_of(second));
    EXPECT(!host_of(first));
    end();
}

static void users_meet_as_the_site_permits(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = consenting(2, "guest");
    guest->user_id = host->user_id + 1;
    expect_refused(guest, host, INVALID, "different users");
    settings.coschedule_scope = COSCHEDULE_SAME_ACCOUNT;
    coscheduling_configure(&settings);
    xfree(guest->account);
    guest->account = xstrdup("chemistry");
    expect_refused(guest, host, INVALID, "different users");
    settings.coschedule_scope = COSCHEDULE_ALL;
    coscheduling_configure(&settings);
    start_guest(guest, host, "n2");
    expect_result(0, APPLIED, "");
    end();
}

static void the_site_may_consent_for_those_who_say_nothing(void) {
    begin_shared();
    settings.coschedule = COSCHEDULE_BOTH;
    coscheduling_configure(&settings);
    job_record_t *host = consenting(1, NULL), *guest = consenting(2, NULL);
    start(host, "n2");
    EXPECT(apply());
    fill(host);
    EXPECT_NUMBER(coscheduling_of(host), COSCHEDULE_BOTH);
    EXPECT_NUMBER(coscheduling_told(host), COSCHEDULE_UNSTATED); // the service has its own rules
    start_guest(guest, host, "n2");
    expect_result(0, APPLIED, "");
    expect_refused(consenting(3, "never"), host, INVALID, "does not allow it to run");
    end();
}

static void the_service_chooses_nodes_unless_slurm_may_share_them(void) {
    begin_shared();
    part_record_t *part = part_list->items[0];
    job_record_t *job = consenting(1, "both");
    EXPECT(!job_is_unmodelled(job));
    job->details->share_res = 1; // --oversubscribe
    EXPECT(job_is_unmodelled(job));
    job->details->share_res = UNSTATED;
    part->max_share = 3;
    EXPECT(job_is_unmodelled(job));
    part->max_share = SHARED_FORCE | 2;
    EXPECT(job_is_unmodelled(job));
    part->max_share = 1;
    EXPECT(!job_is_unmodelled(job));
    end();
}

// ---------------------------------------------------------------- the way back

static void a_guest_is_requeued_and_told_why(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = guest_of(2, host);
    requeue(guest, "its host was 12 % slower");
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(guest->job_state, JOB_PENDING);
    EXPECT_TEXT(guest->system_comment, "schedbridge: its host was 12 % slower");
    EXPECT_NUMBER(host->job_state, JOB_RUNNING);
    // When it waits it is as if it had never run: Slurm's own backfill pairs it with nobody.
    guest->job_state = JOB_PENDING | JOB_COMPLETING; // its node is not cleaned up yet
    coscheduling_restore(guest);
    EXPECT_NUMBER(guest->details->whole_node, WHOLE_NODE_USER);
    guest->job_state = JOB_PENDING;
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    coscheduling_restore_all();
    lock_scope_give(&locks);
    EXPECT_NUMBER(guest->details->share_res, UNSTATED);
    EXPECT_NUMBER(guest->details->whole_node, 0);
    EXPECT(!note_text(guest, "SPANK_SCHEDBRIDGE_SHARES="));
    EXPECT_NUMBER(host->details->share_res, 1);
    EXPECT(note_text(host, "SPANK_SCHEDBRIDGE_SHARES="));
    end();
}

static void who_is_not_requeued(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = guest_of(2, host);
    requeue(host, "");
    expect_result(0, REFUSED, "no longer a guest");
    guest->batch_flag = 0;
    requeue(guest, "");
    expect_result(0, REFUSED, "may not be requeued");
    guest->batch_flag = 1;
    guest->details->requeue = 0; // scontrol update ... Requeue=0, by its user
    mock.requeue_code = ESLURM_DISABLED;
    requeue(guest, "");
    expect_result(0, REFUSED, "");
    EXPECT(!guest->system_comment);
    EXPECT_NUMBER(guest->details->requeue, 1);
    host->job_state = JOB_COMPLETE;
    requeue(guest, "");
    expect_result(0, REFUSED, "no longer a guest");
    EXPECT_NUMBER(guest->job_state, JOB_RUNNING);
    end();
}

static void a_guest_that_slurm_refuses_is_unchanged(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *guest = consenting(2, "guest");
    image_t image = image_of(guest);
    mock.select_code = ESLURM_NODES_BUSY; // for want of memory, say
    start_guest(guest, host, "n2");
    expect_result(0, BUSY, "");
    mock.select_code = 0;
    EXPECT_NUMBER(guest->details->share_res, UNSTATED);
    expect_same(&image, guest);
    end();
}

static void the_rest_of_an_array_shares_nothing(void) {
    begin_shared();
    job_record_t *array = waiting_array(5, 3);
    array->details->share_res = UNSTATED;
    array->details->min_cpus = array->details->num_tasks = 4;
    array->spank_job_env = calloc(1, sizeof(char *));
    array->spank_job_env_size = 1;
    array->spank_job_env[0] = xstrdup(OPTION "coschedule=host");
    start(array, "n2");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(array->details->share_res, 1);
    EXPECT_NUMBER(array->details->whole_node, WHOLE_NODE_USER);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    job_record_t *rest = find_job_record(5);
    lock_scope_give(&locks);
    EXPECT(rest && rest != array);
    EXPECT_NUMBER(rest->details->share_res, UNSTATED);
    EXPECT_NUMBER(rest->details->whole_node, 0);
    EXPECT(!note_text(rest, "SPANK_SCHEDBRIDGE_SHARES="));
    end();
}

static void an_invented_note_makes_no_guest(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    job_record_t *liar = consenting(2, "guest");
    note_write(liar, "SPANK_SCHEDBRIDGE_SHARES=", "1:1:0");
    start(liar, "n3");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    fill(liar);
    EXPECT(!host_of(liar));
    EXPECT(!note_text(liar, "SPANK_SCHEDBRIDGE_SHARES="));
    EXPECT(host->job_state == JOB_RUNNING);
    for (int i = 0; i < 5; i++) {
        static const char *const odd[] = {"", "1", "1:1", "1:1:0:1", "-1:x"};
        note_write(liar, "SPANK_SCHEDBRIDGE_SHARES=", odd[i]);
        EXPECT(!host_of(liar));
    }
    end();
}

int main(void) {
    a_guest_starts_on_its_hosts_nodes();
    guests_start_on_some_nodes_of_their_host();
    both_are_reported();
    only_jobs_that_hold_all_cpus_of_idle_nodes_become_hosts();
    the_partition_must_let_jobs_share();
    who_is_no_guest();
    who_is_no_host();
    a_third_job_is_refused();
    nobody_searches_for_pairs_where_none_can_be();
    slurm_keeps_other_users_off_nodes_that_are_shared();
    a_pair_of_two_users_lets_nobody_in();
    a_job_for_its_user_alone_meets_no_other();
    a_guest_is_nobodys_host_until_its_own_is_gone();
    users_meet_as_the_site_permits();
    the_site_may_consent_for_those_who_say_nothing();
    the_service_chooses_nodes_unless_slurm_may_share_them();
    a_guest_is_requeued_and_told_why();
    who_is_not_requeued();
    a_guest_that_slurm_refuses_is_unchanged();
    the_rest_of_an_array_shares_nothing();
    an_invented_note_makes_no_guest();
    DONE();
}
