# SPDX-License-Identifier: Apache-2.0
"""PBS's terms and commands in messages to users."""

from bridge.words import Words

WORDS = Words(
    partition="queue",
    node="vnode",
    account="project",
    time_limit="walltime",
    time_option="-l walltime",
    nodes_option="-l select=...:vnode=",
    chunks_option="-l select",
    place_option="-l place",
    switches_option="-l place=group",
    whole_nodes_option="-l place=excl",
    time_step_s=1,
    release_command="qrls",
    begin_command="qalter -a",
    daemon_user="pbs",
)
