# SPDX-License-Identifier: Apache-2.0
"""Plans rows in a given order under all rules: the common core of plan policies.

Imports site_rules and the packages below it. Start with `list_scheduler.py`.

Where to look
    expected starts     `single_pass_planner.py` computes them with the kernel `plan_nodes`,
                        `book_planner.py` with the book; `start_search.py` searches the book for a
                        row with a choice.
    the book            `cluster_book.py`: that of one cluster, for one cycle. `book_handover.py`
                        hands it to the next cycle, whose `former_book.py` takes it over.
    the kept plan       `kept_plan.py`, of `placements.py`; `former_placements.py` finds which rows
                        can keep theirs.
    what was planned    `planned_rows.py`, as a plan by `plan_columns.py`; `wait_reasons.py` and
                        `bound_reasons.py` say why a row waits.
    choices of a row    `candidates.py`, `layout_choices.py`, `layout_weights.py`.
    other questions     `advance_reservation.py`, `book_without_job.py`.
"""
