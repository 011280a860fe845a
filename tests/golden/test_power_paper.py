# SPDX-License-Identifier: Apache-2.0
"""The paper's workload on power under static backfill, which does not know of the corridor.

SCHEDBRIDGE_GOLDEN=write writes the run again; read the difference before you commit it.
"""

import os
from pathlib import Path

from bridge.lab.sim.corridor.paper import PAPER_CORRIDOR, PAPER_NODE, PAPER_NODES, power_paper
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.power_options import measured
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider

EXPECTED = Path(__file__).parent / "power-paper.txt"


def render(outcome):
    schedule, workload = outcome.schedule, outcome.workload
    lines = [
        f"{workload.name}, conservative, power not seen",
        "",
        "  job  nodes  draw W  runtime  start  end",
    ]
    lines += [
        f"{workload.id[job]:>5}{workload.processors[job]:>7}{workload.power.draw_w[job]:>8}"
        f"{workload.runtime_s[job]:>9}{schedule.start_s[job]:>7}{schedule.end_s[job]:>5}"
        for job in range(len(workload))
    ]
    lines += ["", "from s  system W"]
    steps = zip(outcome.power.at_s.tolist(), outcome.power.power_w.tolist(), strict=True)
    lines += [f"{at_s:>6}{power_w:>10}" for at_s, power_w in steps]
    found = measured(outcome)
    lines += ["", f"energy {found.energy_j} J, peak {found.peak_w} W"]
    for side in ("upper", "lower"):
        for part in ("all", "late", "avoidable"):
            amount = getattr(getattr(found, side), part)
            lines.append(
                f"{side} bound, {part}: {amount.number} violations, {amount.seconds} s,"
                f" {amount.watt_seconds} W s"
            )
    return "\n".join([*lines, ""])


def test_the_run_is_the_one_that_was_read_and_approved():
    workload = power_paper(seed=1)
    setting = PowerSetting(workload.power, PAPER_NODE, PAPER_CORRIDOR)
    decide = Decider(build(PRESETS["conservative"])).decide
    found = render(simulate(workload, pool_of(PAPER_NODES), decide, power=setting))
    if os.environ.get("SCHEDBRIDGE_GOLDEN") == "write":
        EXPECTED.write_text(found)
    assert found == EXPECTED.read_text()
