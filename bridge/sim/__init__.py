# SPDX-License-Identifier: Apache-2.0
"""The simulator: a trace, a simulated controller, and whatever decides, driven by events.

* `swf`: the Standard Workload Format, in and out.
* `workload`: a trace turned into jobs, by stated rules.
* `system`: the machine they run on.
* `controller`: the authority on queue and nodes; it checks every plan.
* `engine`: the events, second by second.
* `faults`: what goes wrong, from a seed.
* `streams`: jobs made up from a seed, for systems whose logs are not to be had.
* `recordings`, `recorder`: one cycle kept whole; `rerun`, `judging`: planned again, and judged.
* `anonymous`: recordings without the names of people.
* `replay`: the same answers for counts on a pool, from the C++ kernel in one call.
"""
