# SPDX-License-Identifier: Apache-2.0
"""Slurm's terms and commands in messages to users."""

from bridge.words import Words

WORDS = Words(
    partition="partition",
    node="node",
    account="account",
    time_limit="time limit",
    time_option="--time",
    nodes_option="--nodelist",
    chunks_option="--chunks",
    place_option="--place",
    switches_option="--switches",
    whole_nodes_option="--exclusive",
    time_step_s=60,
    release_command="scontrol release",
    begin_command="scontrol update JobId=... StartTime=...",
    daemon_user="slurm",
)
