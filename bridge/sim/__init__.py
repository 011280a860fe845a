# SPDX-License-Identifier: Apache-2.0
"""The simulator: a trace, a simulated controller and a decider, driven by events.

* `swf`: the Standard Workload Format, read and written.
* `workload`: a trace as jobs, by stated rules.
* `system`: the machine.
* `controller`: the authority on queue and nodes; it checks every plan (`plan_checks`).
* `running_jobs`, `occupancy`, `job_rows`: its tables.
* `engine`: the events, second by second.
* `faults`: injected faults, from a seed.
* `streams`: synthetic jobs from a seed, for systems whose logs are not public.
* `rerun`, `judging`: plan recorded cycles again, and evaluate the plans.
* `anonymous`: removes the names of people from recordings.
* `replay`: the same results for counts on a pool, from the C++ kernel in one call.
"""
