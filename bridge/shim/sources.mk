# SPDX-License-Identifier: GPL-2.0-or-later
# The sources of the plugins, for this folder's Makefile and that of tests/shim.

# Without a line of Slurm: tested outside slurmctld.
PLAIN := common/arena common/names common/throttle common/verdict \
    cycle/epoch \
    decisions/decision_results \
    options/coschedule options/malleable \
    report/sent_state \
    wire/framing wire/reply wire/settings wire/wire

# Inside slurmctld.
IN_SLURMCTLD := common/lock_scope common/records \
    cycle/cycle cycle/events cycle/fallback cycle/plugin \
    decisions/actions decisions/announce decisions/apply decisions/reserve decisions/start \
    report/allocation report/gres report/jobs report/node_power report/nodes report/snapshot \
    resize/expand resize/progress resize/resize \
    rules/comment rules/examine rules/job_limits rules/moldable rules/note rules/qos_choice rules/raised_limit rules/reservations \
    rules/room rules/unmodelled rules/wall_limit \
    sharing/coscheduling sharing/extend sharing/hosting sharing/report sharing/requeue

# Inside slurmstepd, on nodes that jobs share.
IN_STEPS := shares/spank_shares
IN_STEPS_PLAIN := shares/cpu_groups

# Inside sbatch, srun and salloc, and slurmstepd.
IN_CLIENTS := options/client options/spank_bridge
IN_CLIENTS_PLAIN := options/chunks_lower options/chunks_read options/coschedule options/job_folder options/malleable
