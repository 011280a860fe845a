# SPDX-License-Identifier: Apache-2.0
"""Reports of a controller that tells falsehoods: impossible, or against each other."""

import math
import random

from bridge.rpc.pb import scheduler_pb2 as pb


def spoil(request: pb.CycleRequest, which: str, dice: random.Random) -> str:
    """Makes a report untrue in place; returns what was done, empty if it offers no way."""
    jobs = list(request.jobs)
    pending = [job for job in jobs if job.state == pb.JOB_STATE_PENDING]
    running = [job for job in jobs if job.state == pb.JOB_STATE_RUNNING and job.allocation.uses]
    match which:
        case "job twice" if jobs:
            request.jobs.append(dice.choice(jobs))
        case "unknown node" if running:
            dice.choice(running).allocation.uses[0].nodes = "atlantis"
        case "too many cpus" if running:
            dice.choice(running).allocation.uses[0].cpus = dice.choice((1000, 2**31))
        case "negative time" if pending:
            dice.choice(pending).begin_s = -dice.randint(1, 2**40)
        case "no version" if pending:
            dice.choice(pending).version = 0
        case "unknown hold" if pending:
            dice.choice(pending).hold = dice.choice((77, 2**31 - 1))
        case "future start" if running:
            dice.choice(running).allocation.start_s += dice.choice((86_400, 2**39))
        case "bad id" if jobs:
            dice.choice(jobs).id = dice.choice(("", "a b", "x" * 5000, "a\nb"))
        case "unknown partition" if running:
            dice.choice(running).allocation.partition = "atlantis"
        case "two exclusive" if len(running) > 1:
            first, second = dice.sample(running, 2)
            second.allocation.uses[0].CopyFrom(first.allocation.uses[0])
            first.allocation.exclusive = second.allocation.exclusive = True
        case "generation":
            request.generation = dice.choice((0, request.base_generation, 2**64 - 1))
        case "time leaps":
            request.now_s += dice.choice((-86_400, 86_400 * 3650, 2**41))
        case "nan":
            request.status.round_trip_ms = math.nan
            request.status.lock_ms_max = -math.inf
        case _:
            return ""
    return which
