# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab train`: train networks. Needs PyTorch: pip install 'schedbridge[train]'."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bridge.errors import ConfigError
from bridge.extras import need

if TYPE_CHECKING:
    from bridge.papers.placement.training.placement import TrainingProgress as Learnt

app = typer.Typer(add_completion=False, help="Train networks.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train networks."""


def need_torch() -> None:
    """Makes sure that PyTorch is installed.

    Raises:
        ConfigError: it is not; the message says how to install it.
    """
    for package in ("torch", "matplotlib"):
        need(package, "train", "train")


@app.command()
def placement(  # noqa: PLR0917 - options, by name
    out: Annotated[Path, typer.Option(help="Directory for weights, checkpoints and curves.")],
    network: Annotated[
        str, typer.Option(help="fcn-1 to fcn-3, cnn-1 to cnn-3 (table II of the paper).")
    ] = "cnn-3",
    steps: Annotated[int, typer.Option(min=1, help="Decisions to learn from.")] = 2_000_000,
    lessons: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of them that is supervised; 0: as in the paper."),
    ] = 0.6,
    rate: Annotated[
        float, typer.Option(min=1e-6, max=1, help="Learning rate at the beginning.")
    ] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, max=65536, help="Decisions per step.")] = 1024,
    boards: Annotated[int, typer.Option(min=2, max=65536, help="Windows at once.")] = 512,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Seed of all random numbers.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="For PyTorch.")] = 1,
    resume: Annotated[bool, typer.Option(help="Continue the training in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train a network that chooses where annealing puts jobs back (place policy `neural`)."""
    need_torch()
    import torch  # noqa: PLC0415 - only here, and slow to import

    from bridge.papers.placement.neural_weights import NETWORKS  # noqa: PLC0415
    from bridge.papers.placement.training.placement import Course, train  # noqa: PLC0415
    from bridge.papers.placement.training.ppo import PpoSettings  # noqa: PLC0415

    if network not in NETWORKS:
        raise ConfigError("--network", f"no network '{network}'; there are {', '.join(NETWORKS)}")
    torch.set_num_threads(threads)
    course = Course(network, steps, lessons, boards, seed=seed)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("reward {task.fields[reward]:.2f}  cost {task.fields[cost]:.4f}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=as_json,
    ) as bar:
        task = bar.add_task(network, total=steps, reward=0.0, cost=1.0)

        def tell(learnt: "Learnt") -> None:
            row = learnt.curve[-1]
            bar.update(task, completed=min(learnt.steps, steps), reward=row["reward"])
            if "cost" in row:
                bar.update(task, cost=row["cost"])

        settings = PpoSettings(rate=rate, critic_rate=2 * rate, batch=batch)
        learnt = train(course, out, resume=resume, settings=settings, tell=tell)
    last = learnt.curve[-1] if learnt.curve else {}
    cost = next((row["cost"] for row in reversed(learnt.curve) if "cost" in row), None)
    result = {
        "network": network,
        "steps": learnt.steps,
        "spent_s": round(learnt.spent_s, 1),
        "reward": last.get("reward"),
        "cost_to_sequential": cost,
        "weights": str(out / "weights.npz"),
    }
    if as_json:
        print(json.dumps(result))
    elif cost is not None:
        print(
            f"{network}: {learnt.steps:,} decisions in {learnt.spent_s:.0f} s, held-out windows at "
            f"{cost:.4f} of sequential; weights in {result['weights']}"
        )
