# SPDX-License-Identifier: Apache-2.0
"""Four workflows whose stages are jobs that depend on each other: load for co-scheduling.

    workflow.py list
    workflow.py run NAME [STAGE] --cores N --size S --times T --folder DIR
    workflow.py submit NAME --cores N --size S --times T --folder DIR [-- SBATCH OPTIONS]

`run` without a stage runs all of them here, one after the other. `submit` gives Slurm one job for
each stage, which starts when the one before has succeeded: on N CPUs, parallel stages with N tasks,
sequential ones with one task. DIR is a folder that all nodes see; each workflow needs one of
its own. A stage does its work T times, and tells its progress after each. Every stage writes one
line of JSON: seconds of wall and CPU time, MiB of memory, and whether its results are right. The
exit code is 1 if one is wrong.

| name | bound by | stages |
|---|---|---|
| montage | input and output | parallel, sequential, parallel, sequential |
| blast | the CPU | parallel, sequential |
| readings | messages | sequential, parallel, parallel, sequential |
| synthetic | memory and the CPU | sequential, parallel |
"""

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

import blast
import montage
import readings
import synthetic
from tasks import start
from telling import tell

WORKFLOWS = {each.__name__: each.STAGES for each in (montage, blast, readings, synthetic)}


def run(name, stage, options):
    """Runs one stage here; returns whether its result is right, in task 0."""
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    cores = options.cores if stage.parallel else 1
    tasks, children, forked = start(cores, options.folder / f"{name}-{stage.name}.address")
    with tasks:
        results = []
        for done in range(1, options.times + 1):
            results.append(stage.work(tasks, options.size, options.folder))
            if tasks.rank == 0:
                tell(done / options.times)
        cpu_s = sum(tasks.exchange(time.process_time() - began_cpu_s * (not forked)))
        rss_mib = sum(tasks.exchange(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    if forked:
        os._exit(0)
    if tasks.rank:
        return True
    wall_s = time.monotonic() - began_s
    right = set(map(repr, results)) == {repr(stage.expected(options.size))}
    line = {
        "workflow": name, "stage": stage.name, "cores": cores, "size": options.size,
        "times": options.times, "wall_s": round(wall_s, 3), "cpu_s": round(cpu_s, 3),
        "rss_mib": round(rss_mib, 1), "right": right,
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    ended = [os.waitpid(child, 0)[1] for child in children]
    return right and not any(ended)


def submit(name, options):
    """Gives Slurm the jobs of a workflow; prints their ids."""
    before = ""
    for stage in WORKFLOWS[name]:
        tasks = options.cores if stage.parallel else 1
        command = [
            "srun", f"-n{tasks}", *(["-N1"] if tasks == 1 else []), sys.executable,
            str(Path(__file__).resolve()), "run", name, stage.name, "--cores", str(options.cores),
            "--size", str(options.size), "--times", str(options.times),
            "--folder", str(options.folder.resolve()),
        ]  # fmt: skip
        words = [
            "sbatch", "--parsable", f"--job-name={name}-{stage.name}",
            f"-n{options.cores}",
            f"--output={options.folder.resolve()}/{stage.name}.out",
            *([f"--dependency=afterok:{before}"] if before else []),
            *options.sbatch, "--wrap", shlex.join(command),
        ]  # fmt: skip
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        except OSError as error:
            print(f"workflow.py: sbatch: {error.strerror}", file=sys.stderr)
            return False
        if done.returncode:
            return False
        before = done.stdout.strip().split(";")[0]
        print(f"{before} {name}-{stage.name}")
    return True


def positive(text):
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    """Exit code 1: a result is wrong, or Slurm refused a job; 2: the command makes no sense."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("list", "run", "submit"))
    parser.add_argument("name", nargs="?", choices=sorted(WORKFLOWS))
    parser.add_argument("stage", nargs="?")
    parser.add_argument("--cores", type=positive, default=1)
    parser.add_argument("--size", type=positive, default=1)
    parser.add_argument("--times", type=positive, default=1)
    parser.add_argument("--folder", type=Path, default=Path())
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.sbatch = words[split + 1 :]
    if options.verb == "list":
        for name, stages in WORKFLOWS.items():
            kinds = (f"{s.name} ({'parallel' if s.parallel else 'sequential'})" for s in stages)
            print(f"{name}: {', '.join(kinds)}")
        return 0
    if options.name is None:
        parser.error(f"which workflow? There are {', '.join(sorted(WORKFLOWS))}")
    if not options.folder.is_dir():
        parser.error(f"--folder {options.folder} is not a folder")
    if options.verb == "submit":
        return 0 if submit(options.name, options) else 1
    stages = WORKFLOWS[options.name]
    names = [stage.name for stage in stages]
    if options.stage is not None and options.stage not in names:
        parser.error(f"{options.name} has no stage '{options.stage}', but {', '.join(names)}")
    right = [
        run(options.name, stage, options) for stage in stages if options.stage in (None, stage.name)
    ]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
