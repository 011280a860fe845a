// SPDX-License-Identifier: GPL-2.0-or-later
// Starts whose nodes Slurm chooses, against the mock of slurmctld: among what it is left to choose
// from, one reservation after the other, and the record is as it was where it finds none.
#include "applying.h"
#include "rules/unmodelled.h"

static void slurm_chooses_among_nodes(void) {
    for (int refused = 0; refused < 2; refused++) {
        begin();
        job_record_t *job = waiting(1);
        job->details->min_nodes = 2;
        job->details->max_nodes = 4;
        job->details->overcommit = 1;
        job->req_switch = 1;
        job->details->req_node_bitmap = bit_alloc(8);
        bit_set(job->details->req_node_bitmap, 3);
        job->details->exc_node_bitmap = bit_alloc(8);
        bit_set(job->details->exc_node_bitmap, 6);
        mock.select_code = refused ? ESLURM_NODES_BUSY : 0;
        image_t before = image_of(job);
        start(job, "")->choice = "n[2-4,7]";
        EXPECT(apply());
        expect_result(0, refused ? BUSY : APPLIED, refused ? "error" : "");
        EXPECT(mock.select_among);
        EXPECT_TEXT(mock.select_names, "n2,n3,n4"); // n7 is excluded by its user
        EXPECT_NUMBER(mock.select_switch, 1);
        EXPECT_NUMBER(mock.select_nodes, 2);
        if (refused) {
            expect_same(&before, job);
        } else {
            EXPECT_TEXT(job->nodes, "n2,n4");
            EXPECT_NUMBER(job->details->max_nodes, 4);
            EXPECT(bit_set_count(job->details->req_node_bitmap) == 1);
            EXPECT(bit_set_count(job->details->exc_node_bitmap) == 1);
            FREE_NULL_BITMAP(before.required);
            FREE_NULL_BITMAP(before.excluded);
        }
        end();
    }
}

static void of_more_names_than_nodes_some_will_do(void) {
    begin();
    job_record_t *job = waiting(1);
    job->details->req_node_bitmap = bit_alloc(8);
    bit_set(job->details->req_node_bitmap, 0);
    bit_set(job->details->req_node_bitmap, 1);
    job->details->min_nodes = job->details->max_nodes = 1;
    EXPECT(job_is_unmodelled(job));
    start(job, "")->choice = "n[2-4]"; // n1 is drained
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_TEXT(job->nodes, "n2");
    EXPECT(bit_set_count(job->details->req_node_bitmap) == 2);
    end();
}

static void preferred_features_are_tried_first(void) {
    static const char *const there[] = {"fast", "plain", "none"};
    for (size_t i = 0; i < 3; i++) {
        begin();
        job_record_t *job = waiting_array(1, 2);
        uint64_t before = job_version(job);
        job->details->features = xstrdup("plain");
        job->details->prefer = xstrdup("fast");
        EXPECT(job_is_unmodelled(job));
        EXPECT(job_version(job) != before);
        mock.only_with = there[i];
        char *use = job->details->features_use;
        start(job, "")->choice = "n[1-4]";
        EXPECT(apply());
        expect_result(0, i < 2 ? APPLIED : BUSY, i < 2 ? "" : "error");
        EXPECT_NUMBER(mock.selects, i == 0 ? 1 : 2);
        if (i < 2) {
            EXPECT_TEXT(job->details->features_use, there[i]);
        } else {
            EXPECT(job->details->features_use == use);
        }
        end();
    }
    begin(); // where the service names the nodes, too
    job_record_t *job = waiting(1);
    job->details->features = xstrdup("plain");
    job->details->prefer = xstrdup("fast");
    mock.only_with = "plain";
    start(job, "n1");
    EXPECT(apply());
    expect_result(0, APPLIED, "");
    EXPECT_NUMBER(mock.selects, 2);
    end();
}

static void the_width_between_two_bounds_is_slurms(void) {
    static const struct {
        uint32_t minimum, maximum, tasks;
        const char *devices;
        bool unmodelled;
    } cases[] = {{1, 3, 1, "gres/gpu:4", true},  {2, 2, 2, "gres/gpu:4", false},
                 {1, 0, 1, "gres/gpu:4", false}, {1, NO_VAL, 1, "gres/gpu:4", false},
                 {1, 8, 4, NULL, true},          {2, 3, 6, NULL, true},
                 {1, 4, 1, NULL, false}, // as wide as there is room, in any case
                 {2, 4, 2, NULL, false},         {2, 2, 4, NULL, false},
                 {1, 0, 4, NULL, false},         {1, 4, NO_VAL, NULL, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        job_record_t *job = waiting(1);
        job->details->min_nodes = cases[i].minimum;
        job->details->max_nodes = cases[i].maximum;
        job->details->num_tasks = cases[i].tasks;
        job->tres_per_job = xstrdup(cases[i].devices);
        EXPECT(job_is_unmodelled(job) == cases[i].unmodelled);
        end();
    }
}

static void numbers_of_nodes_beyond_a_range_are_the_controllers(void) {
    begin();
    job_record_t *job = waiting(1);
    job->details->min_nodes = 1;
    job->details->max_nodes = 3;
    EXPECT(!job_is_unmodelled(job));
    job->details->job_size_bitmap = bit_alloc(4); // -N 1,3
    bit_set(job->details->job_size_bitmap, 1);
    bit_set(job->details->job_size_bitmap, 3);
    EXPECT(job_is_unmodelled(job));
    FREE_NULL_BITMAP(job->details->job_size_bitmap);
    job->bit_flags |= USE_MIN_NODES; // --use-min-nodes: not as wide as there is room
    EXPECT(job_is_unmodelled(job));
    end();
}

static void reservations_are_tried_one_after_the_other(void) {
    for (int there = 0; there < 4; there++) { // nowhere, in the first, in the second, anywhere
        begin();
        slurmctld_resv_t *one = mock_reservation("one", 0), *two = mock_reservation("two", 0);
        slurmctld_resv_t *other = mock_reservation("other", RESERVE_FLAG_MAGNETIC),
                         *in[] = {other, one, two, NULL};
        job_record_t *job = waiting(1);
        EXPECT(job_is_unmodelled(job)); // by the magnetic one
        job->resv_name = xstrdup("one,two");
        EXPECT(!job_is_unmodelled(job));
        job->resv_list = mock_list();
        mock_append(job->resv_list, one);
        mock_append(job->resv_list, two);
        EXPECT(job_is_unmodelled(job));
        mock.only_in = in[there];
        start(job, "")->choice = "n[1-4]";
        EXPECT(apply());
        expect_result(0, there ? APPLIED : BUSY, there ? "" : "error");
        EXPECT(job->resv_ptr == (there == 0 ? NULL : there == 2 ? two : one));
        EXPECT_NUMBER(job->resv_id, there == 0 ? 0 : there == 2 ? 2 : 1);
        EXPECT_TEXT(job->resv_name, "one,two");
        end();
    }
}

static void magnetic_reservations_draw_in(void) {
    for (int there = 0; there < 3; there++) {
        begin();
        (void)mock_reservation("first", RESERVE_FLAG_MAGNETIC);
        slurmctld_resv_t *full = mock_reservation("full", RESERVE_FLAG_MAGNETIC);
        slurmctld_resv_t *open = mock_reservation("open", RESERVE_FLAG_MAGNETIC);
        job_record_t *job = waiting_array(1, 2);
        mock.only_in = there == 0 ? open : there == 1 ? full : NULL;
        start(job, "")->choice = "n[1-4]";
        EXPECT(apply());
        expect_result(0, APPLIED, "");
        EXPECT_TEXT(job->resv_name, there == 0 ? "open" : there == 1 ? "full" : "first");
        EXPECT(lock_scope_take(&locks, LOCK_SCOPE_READ));
        job_record_t *rest = find_job_record(1); // the tasks that are left are in none
        lock_scope_give(&locks);
        EXPECT(rest && rest != job && !rest->resv_name && !rest->resv_ptr);
        end();
    }
    begin(); // only those that it would have
    slurmctld_resv_t *users = mock_reservation("users", RESERVE_FLAG_MAGNETIC);
    uid_t user = 1001;
    users->user_list = &user;
    users->user_cnt = 1;
    job_record_t *job = waiting(1);
    job->user_id = 1001;
    EXPECT(job_is_unmodelled(job));
    job->user_id = 1002;
    EXPECT(!job_is_unmodelled(job));
    users->account_cnt = 1; // for Slurm to judge
    EXPECT(job_is_unmodelled(job));
    job->resv_name = xstrdup("mine");
    EXPECT(!job_is_unmodelled(job));
    end();
    begin(); // outside of all, if it has no room
    slurmctld_resv_t *none = mock_reservation("none", RESERVE_FLAG_MAGNETIC);
    job = waiting(1);
    slurmctld_resv_t nowhere = {0};
    mock.only_in = &nowhere;
    start(job, "")->choice = "n[1-4]";
    EXPECT(apply());
    expect_result(0, BUSY, "error");
    EXPECT(!job->resv_name && !job->resv_ptr && !(job->bit_flags & JOB_MAGNETIC) && none);
    EXPECT_NUMBER(mock.selects, 2);
    end();
}

int main(void) {
    slurm_chooses_among_nodes();
    of_more_names_than_nodes_some_will_do();
    preferred_features_are_tried_first();
    the_width_between_two_bounds_is_slurms();
    numbers_of_nodes_beyond_a_range_are_the_controllers();
    reservations_are_tried_one_after_the_other();
    magnetic_reservations_draw_in();
    DONE();
}
