// SPDX-License-Identifier: GPL-2.0-or-later
// Time limits of hosts, lengthened by what their guests have cost them: how long they had guests,
// and what bounds an extension whatever the service asks for.
#include "resize/progress.h"
#include "rules/comment.h"
#include "rules/note.h"
#include "rules/raised_limit.h"
#include "sharing.h"
#include "sharing/extend.h"
#include "sharing/hosting.h"

#define RECORD "schedbridge guests: "
#define LIMIT 10 // minutes, of the mock's jobs

static void pass(int64_t seconds) {
    mock.now_us += seconds * 1000000;
}

static int64_t hosted(const job_record_t *job) {
    hosting_t hosting;
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    bool known = hosting_of(job, &hosting);
    int64_t seconds = known ? hosting_seconds(&hosting, job, time(NULL)) : -1;
    lock_scope_give(&locks);
    return seconds;
}

static void leave(job_record_t *guest) {
    finish(guest);
    guest->end_time = time(NULL);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    EXPECT(coscheduling_has_left(guest));
    coscheduling_leave_all();
    EXPECT(!coscheduling_has_left(guest));
    lock_scope_give(&locks);
}

static void requeued(job_record_t *job) {
    mock_idle(job);
    job->job_state = JOB_PENDING;
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    coscheduling_restore(job);
    lock_scope_give(&locks);
}

static void expect_limit(const job_record_t *job, uint32_t minutes) {
    EXPECT_NUMBER(job->time_limit, minutes);
    EXPECT_NUMBER(job->end_time - job->start_time, 60 * minutes);
}

// ---------------------------------------------------------------- time with guests

static void the_time_with_guests_is_counted_once(void) {
    begin_shared();
    job_record_t *host = wide_host(1);
    EXPECT_NUMBER(hosted(host), 0);
    pass(100);
    EXPECT_NUMBER(hosted(host), 0);
    job_record_t *first = consenting(2, "guest"), *second = consenting(3, "guest");
    start_guest(first, host, "n1");
    expect_result(0, APPLIED, "");
    fill(first);
    pass(50);
    start_guest(second, host, "n2"); // two at a time count as one
    expect_result(0, APPLIED, "");
    fill(second);
    pass(30);
    EXPECT_NUMBER(hosted(host), 80);
    leave(first);
    pass(20);
    EXPECT_NUMBER(hosted(host), 100);
    leave(second);
    pass(300);
    EXPECT_NUMBER(hosted(host), 100);
    EXPECT_NUMBER(hosted(second), -1);
    job_record_t *third = consenting(4, "guest");
    start_guest(third, host, "n3");
    expect_result(0, APPLIED, "");
    fill(third);
    pass(5);
    EXPECT_NUMBER(hosted(host), 105);
    requeue(third, "");
    expect_result(0, APPLIED, "");
    third->job_state = JOB_PENDING;
    third->end_time = 0;
    pass(1);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    coscheduling_restore_all();
    lock_scope_give(&locks);
    pass(50);
    EXPECT_NUMBER(hosted(host), 106);
    end();
}

static void an_end_that_is_noticed_late_counts_when_it_was(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2"), *guest = guest_of(2, host);
    pass(40);
    finish(guest);
    guest->end_time = time(NULL);
    pass(5000); // slurmctld was down
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    coscheduling_leave_all();
    lock_scope_give(&locks);
    EXPECT(hosted(host) >= 40 && hosted(host) <= 160);
    end();
}

static void the_service_is_told(void) {
    begin_shared();
    arena_t arena = {0};
    job_record_t *host = host_on(1, "n2"), *guest = guest_of(2, host);
    int64_t since_s = time(NULL);
    pass(90);
    extend(host, 61);
    expect_result(0, APPLIED, "");
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    uint64_t print = job_fingerprint(host, know(host), 0);
    pb_job_t *message = job_message(&arena, host, know(host), 0);
    EXPECT_NUMBER(message->hosted_s, 0);
    EXPECT_NUMBER(message->hosted_since_s, since_s);
    EXPECT_NUMBER(message->extended_s, 120);
    EXPECT(message->extendable);
    EXPECT_NUMBER(message->allocation->end_s, host->start_time + 60 * (LIMIT + 2));
    lock_scope_give(&locks);
    leave(guest);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
    EXPECT(job_fingerprint(host, know(host), 0) != print);
    message = job_message(&arena, host, know(host), 0);
    EXPECT_NUMBER(message->hosted_s, 90);
    EXPECT_NUMBER(message->hosted_since_s, 0);
    slurmctld_resv_t resv = {0};
    host->resv_ptr = &resv; // it ends with its reservation
    EXPECT(!job_message(&arena, host, know(host), 0)->extendable);
    host->resv_ptr = NULL;
    host->time_limit = INFINITE;
    EXPECT(!job_message(&arena, host, know(host), 0)->extendable);
    lock_scope_give(&locks);
    arena_reset(&arena);
    end();
}

// ---------------------------------------------------------------- extensions

static void a_limit_grows_by_whole_minutes_and_once(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    (void)guest_of(2, host);
    host->limit_set.time = 1;
    pass(400);
    static const struct {
        int64_t total_s;
        uint32_t minutes;
    } steps[] = {{1, 1}, {60, 1}, {1, 1}, {61, 2}, {61, 2}, {30, 2}, {300, 5}, {120, 5}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        extend(host, steps[i].total_s);
        expect_result(0, APPLIED, "");
        expect_limit(host, LIMIT + steps[i].minutes);
    }
    EXPECT_NUMBER(host->limit_set.time, 1); // MaxWall still applies
    // It may exceed the partition's limit, which bounds what users request.
    host->part_ptr->max_time = LIMIT;
    extend(host, 360);
    expect_result(0, APPLIED, "");
    expect_limit(host, LIMIT + 6);
    // Its user gets a shorter limit meanwhile: later losses are added to that.
    host->time_limit = 15;
    host->end_time = host->start_time + 900;
    extend(host, 361);
    expect_result(0, APPLIED, "");
    expect_limit(host, 16);
    raised_limit_restore(host); // when it waits again
    EXPECT_NUMBER(host->time_limit, 15);
    end();
}

static void a_job_gets_no_more_than_its_time_with_guests(void) {
    static const int64_t asked_s[] = {121, 10000, INT64_MAX};
    for (size_t i = 0; i < sizeof(asked_s) / sizeof(asked_s[0]); i++) {
        begin_shared();
        job_record_t *host = host_on(1, "n2");
        pass(200);
        job_record_t *guest = guest_of(2, host);
        pass(100);
        leave(guest);
        pass(1000);
        extend(host, asked_s[i]);
        expect_result(0, APPLIED, "");
        expect_limit(host, LIMIT + 2);
        extend(host, asked_s[i]);
        expect_limit(host, LIMIT + 2);
        end();
    }
}

static void only_hosts_are_extended(void) {
    begin_shared();
    job_record_t *alone = host_on(1, "n2"), *guest = guest_of(2, alone), *plain = waiting(3);
    start(plain, "n4");
    EXPECT(apply());
    pass(100);
    extend(guest, 60);
    expect_result(0, INVALID, "no guest");
    extend(plain, 60);
    expect_result(0, INVALID, "no guest");
    extend(host_on(4, "n1"), 60);
    expect_result(0, INVALID, "no guest");
    extend(alone, 0);
    expect_result(0, INVALID, "is none");
    extend(alone, -60);
    expect_result(0, INVALID, "is none");
    alone->time_limit = INFINITE;
    extend(alone, 60);
    expect_result(0, REFUSED, "no time limit");
    alone->time_limit = LIMIT;
    mock.update_code = ESLURM_DISABLED;
    extend(alone, 60);
    expect_result(0, REFUSED, "");
    mock.update_code = 0;
    mock.update_does_nothing = true;
    extend(alone, 60);
    expect_result(0, REFUSED, "Slurm reports success");
    mock.update_does_nothing = false;
    expect_limit(alone, LIMIT);
    EXPECT_NUMBER(alone->limit_set.time, 0);
    extend(alone, 60); // what failed was not counted
    expect_limit(alone, LIMIT + 1);
    end();
}

static void no_extension_reaches_into_a_reservation(void) {
    static const struct {
        unsigned first, last;      // nodes
        int64_t starts_s, lasts_s; // after the job's limit
        bool good;
    } cases[] = {
        {1, 1, 60, 600, true}, {1, 1, 59, 600, false}, {2, 2, 0, 600, true},
        {0, 3, 30, 1, false},  {1, 1, -700, 5, true}, // over
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin_shared();
        job_record_t *host = host_on(1, "n2");
        (void)guest_of(2, host);
        pass(200);
        slurmctld_resv_t *resv = mock_reservation("repair", 0);
        resv->start_time = host->end_time + cases[i].starts_s;
        resv->end_time = resv->start_time + cases[i].lasts_s;
        resv->node_bitmap = bit_alloc(8);
        for (unsigned at = cases[i].first; at <= cases[i].last; at++)
            bit_set(resv->node_bitmap, at);
        extend(host, 60);
        expect_result(0, cases[i].good ? APPLIED : REFUSED, cases[i].good ? "" : "repair");
        expect_limit(host, LIMIT + cases[i].good);
        FREE_NULL_BITMAP(resv->node_bitmap);
        end();
    }
}

static void what_fits_before_the_first_reservation_is_granted(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    (void)guest_of(2, host);
    pass(300);
    static const int64_t starts_s[] = {290, 190, 270, 0};
    slurmctld_resv_t *resvs[4];
    for (size_t i = 0; i < 4; i++) {
        resvs[i] = mock_reservation("repair", 0);
        resvs[i]->start_time = host->end_time + starts_s[i];
        resvs[i]->end_time = resvs[i]->start_time + 600;
        resvs[i]->node_bitmap = bit_alloc(8);
        bit_set(resvs[i]->node_bitmap, 1);
    }
    resvs[3]->flags = RESERVE_FLAG_TIME_FLOAT;
    extend(host, 300);
    expect_result(0, APPLIED, "");
    expect_limit(host, LIMIT + 3);
    extend(host, 300);
    expect_result(0, REFUSED, "repair");
    expect_limit(host, LIMIT + 3);
    for (size_t i = 0; i < 4; i++)
        FREE_NULL_BITMAP(resvs[i]->node_bitmap);
    end();
}

static void a_guest_of_a_former_run_keeps_no_record_open(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2"), *stays = guest_of(2, host);
    pass(100);
    requeued(host);
    start(host, "n4");
    EXPECT(apply());
    fill(host);
    job_record_t *guest = consenting(3, "guest");
    start_guest(guest, host, "n4");
    expect_result(0, APPLIED, "");
    fill(guest);
    pass(30);
    leave(guest);
    pass(200);
    EXPECT(!IS_JOB_COMPLETING(stays));
    EXPECT_NUMBER(hosted(host), 30);
    end();
}

static void a_guest_can_leave_a_suspended_host(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2"), *guest = guest_of(2, host);
    pass(60);
    host->job_state = JOB_SUSPENDED;
    leave(guest);
    pass(200);
    host->job_state = JOB_RUNNING;
    EXPECT_NUMBER(hosted(host), 60);
    end();
}

static void a_new_run_begins_without_time_with_guests(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2");
    (void)guest_of(2, host);
    pass(100);
    requeued(host);
    EXPECT(!host->system_comment);
    start(host, "n3");
    EXPECT(apply());
    fill(host);
    EXPECT_NUMBER(hosted(host), 0);
    end();
}

static void nothing_that_a_user_writes_gives_time(void) {
    static const char *const keys[] = {"SPANK_SCHEDBRIDGE_HOSTS=", "SPANK_SCHEDBRIDGE_SHARES="};
    static const char *const odd[] = {"",
                                      "1 s",
                                      "-5 s, since 0, limit +0 min",
                                      "1 s, since -2, limit +0 min",
                                      "1 s, since 0, limit +0 min!",
                                      "x s, since 0, limit +0 min"};
    begin_shared();
    job_record_t *host = consenting(1, "host"), *plain = waiting(2);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        note_write(host, keys[i], "100000:0:0");
        note_write(plain, keys[i], "100000:0:0");
    }
    start(host, "n2");
    EXPECT(apply());
    fill(host);
    start(plain, "n4");
    EXPECT(apply());
    fill(plain);
    EXPECT_NUMBER(hosted(host), 0);
    EXPECT_NUMBER(hosted(plain), -1);
    pass(60 * LIMIT - 10);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    extend_hosts_in_fallback(time(NULL));
    lock_scope_give(&locks);
    expect_limit(host, LIMIT);
    expect_limit(plain, LIMIT);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        comment_write(host, RECORD, odd[i]);
        EXPECT_NUMBER(hosted(host), -1);
    }
    end();
}

static void time_with_guests_counts_until_the_own_limit(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2"), *guest = guest_of(2, host);
    pass(60 * LIMIT - 10);
    extend(host, INT64_MAX);
    expect_limit(host, 2 * LIMIT);
    pass(60 * LIMIT - 10); // the guest has stayed
    EXPECT_NUMBER(hosted(host), 60 * LIMIT);
    extend(host, INT64_MAX);
    expect_limit(host, 2 * LIMIT);
    leave(guest);
    EXPECT_NUMBER(hosted(host), 60 * LIMIT);
    extend(host, INT64_MAX);
    expect_limit(host, 2 * LIMIT);
    end();
}

static void the_record_stands_beside_what_others_wrote(void) {
    begin_shared();
    job_record_t *host = consenting(1, "host");
    host->system_comment = xstrdup("from a site");
    start(host, "n2");
    EXPECT(apply());
    fill(host);
    EXPECT_TEXT(host->system_comment, "from a site; " RECORD "none yet");
    show_text(host, "its guest; " RECORD "9 s, since 0, limit +0 min");
    EXPECT_NUMBER(hosted(host), 0);
    show_text(host, "");
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    hosting_forget(host);
    lock_scope_give(&locks);
    EXPECT_TEXT(host->system_comment, "from a site");
    end();
}

static void in_fallback_a_host_gets_all_of_it_before_its_limit(void) {
    begin_shared();
    job_record_t *host = host_on(1, "n2"), *guest = guest_of(2, host), *other = host_on(3, "n4");
    pass(150);
    leave(guest);
    EXPECT(lock_scope_take(&locks, LOCK_SCOPE_APPLY));
    extend_hosts_in_fallback(time(NULL));
    expect_limit(host, LIMIT);
    pass(60 * LIMIT - 200);
    extend_hosts_in_fallback(time(NULL));
    expect_limit(host, LIMIT + 3);
    expect_limit(other, LIMIT);
    pass(180);
    extend_hosts_in_fallback(time(NULL));
    expect_limit(host, LIMIT + 3);
    lock_scope_give(&locks);
    end();
}

int main(void) {
    the_time_with_guests_is_counted_once();
    an_end_that_is_noticed_late_counts_when_it_was();
    the_service_is_told();
    a_limit_grows_by_whole_minutes_and_once();
    a_job_gets_no_more_than_its_time_with_guests();
    only_hosts_are_extended();
    no_extension_reaches_into_a_reservation();
    what_fits_before_the_first_reservation_is_granted();
    a_guest_of_a_former_run_keeps_no_record_open();
    a_guest_can_leave_a_suspended_host();
    a_new_run_begins_without_time_with_guests();
    nothing_that_a_user_writes_gives_time();
    time_with_guests_counts_until_the_own_limit();
    the_record_stands_beside_what_others_wrote();
    in_fallback_a_host_gets_all_of_it_before_its_limit();
    DONE();
}
