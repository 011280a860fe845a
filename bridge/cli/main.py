# SPDX-License-Identifier: Apache-2.0
"""The command `schedbridge`. A sub-command's module is imported only when it is called.

Exit codes: 0 success; 1 failure (the service does not answer, a file is invalid), with one line
per problem on standard error; 2 wrong usage; 3 a simulation was stopped because its backlog grew.
"""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bridge.cli.invocation import remember
from bridge.errors import BridgeError

_LONGEST: Final = 800
"""Maximum number of characters of an error line: a file may be one word of megabytes."""

_LAB: Final = "lab"
"""The word before the commands of the laboratory."""

COMMANDS: Final = {
    # name: (module, in bridge.cli unless it is named in full, function or typer app in it, one line
    # for --help). That of power is here, too, as long as its package imports numpy.
    "serve": ("serve", "serve", "Run the service."),
    "agent": ("agent", "agent", "Run the agent of a node."),
    "pbs-link": ("pbs_link", "pbs_link", "Take the place of pbs_sched on an OpenPBS server."),
    "check-config": ("check_config", "check_config", "Check a configuration file."),
    "status": ("operators.status", "status", "Show the state of the service and its controller."),
    "plan": ("operators.plan", "plan", "Show what starts when and where."),
    "explain": (
        "operators.explain",
        "explain",
        "Explain why a job waits, or where it starts.",
    ),
    "accuracy": ("operators.accuracy", "accuracy", "Show the accuracy of announced starts."),
    "topology": (
        "operators.topology",
        "app",
        "Draw the switches and their jobs; check a topology.conf.",
    ),
    "policy": ("operators.policy", "app", "Show or change the policy."),
    "power": (
        "bridge.extensions.power.commands.power",
        "app",
        "Show system power; show or set its bounds.",
    ),
    "changes": ("operators.changes", "changes", "List changes of operators (administrators)."),
    "reserve": ("operators.reserve", "reserve", "Make an advance reservation (administrators)."),
    "unreserve": ("operators.reserve", "unreserve", "Remove a reservation (administrators)."),
    "run": ("run", "app", "Run a program in a job that can grow and shrink."),
    "elastic": ("operators.elastic", "app", "Show and change jobs that grow and shrink."),
    "lab simulate": (
        "simulation.simulate",
        "simulate",
        "Replay a trace under one or more policies.",
    ),
    "lab experiment": (
        "experiments.experiment",
        "experiment",
        "Compare policies on traces, seeds and perturbations.",
    ),
    "lab rerun": ("experiments.rerun", "rerun", "Repeat a result, and say whether it is the same."),
    "lab experiment-report": (
        "experiments.report",
        "report",
        "Compare the results of an experiment, with intervals.",
    ),
    "lab import": (
        "simulation.importing",
        "import_",
        "Convert a site's accounting into a workload.",
    ),
    "lab generate": (
        "simulation.generate",
        "generate",
        "Generate jobs of a model, or of one fitted to a trace.",
    ),
    "lab record": (
        "simulation.record",
        "record",
        "Record cycles of the service or of a simulation.",
    ),
    "lab replay": ("simulation.replay", "replay", "Plan recorded cycles again, and compare."),
    "lab compare": ("simulation.compare", "compare", "Compare policies on recorded cycles."),
    "lab demo": ("simulation.demo", "demo", "Watch the service plan a real trace."),
    "lab train": ("train", "app", "Train the networks that place jobs (needs PyTorch)."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command; a user's mistake is one line, never a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    guard(lambda: _main(words), words)


def guard(run: Callable[[], None], words: Sequence[str]) -> None:
    """Runs a program that was called with these words; errors are a line and an exit code."""
    remember(words)
    if isinstance(sys.stdout, io.TextIOWrapper):  # users' texts may have characters it cannot show
        sys.stdout.reconfigure(errors="replace")
    try:
        run()
        sys.stdout.flush()  # report write errors here, not when Python ends
    except SystemExit:
        try:
            sys.stdout.flush()
        except OSError as error:
            sys.exit(_unwritten(error))
        raise
    except BridgeError as error:
        sys.exit(_fail(str(error), 1))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(_unwritten(error))
    except UnicodeEncodeError as error:
        sys.exit(_fail(f"'{error.object[:64]}' is not text (UTF-8)", 1))
    except MemoryError:
        sys.exit(_fail("there is not enough memory for this", 1))


def _main(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(usage(), end="")
        sys.exit(0 if words else 2)
    if words[0] in ("-V", "--version"):
        print(f"schedbridge {_version()}")
    elif words[0] == _LAB and words[1:2] in ([], ["-h"], ["--help"]):
        print(lab_usage(), end="")
        sys.exit(0 if words[1:] else 2)
    else:
        n_words = 2 if words[0] == _LAB else 1
        name = " ".join(words[:n_words])
        if name not in COMMANDS and name not in commands():
            sys.exit(_fail(_unknown(name), 2))
        _run(name, words[n_words:])


def commands() -> dict[str, tuple[str, str, str]]:
    """All commands, as `COMMANDS`: also those of extensions, which take longer to find."""
    from bridge.cli.extension_commands import extension_commands  # noqa: PLC0415 - slow

    found, _ = extension_commands()
    of_extensions = {name: (it.module, it.attribute, it.summary) for name, it in found.items()}
    return {**of_extensions, **COMMANDS}


def _unknown(name: str) -> str:
    if f"{_LAB} {name}" in COMMANDS:
        return f"'{name}' is a command of the laboratory: schedbridge {_LAB} {name}"
    in_lab = name.startswith(f"{_LAB} ")
    there = [*_site_commands(), _LAB] if not in_lab else list(_lab_commands())
    return f"no command '{name}'; there are {', '.join(there)}{_left_out()}"


def _left_out() -> str:
    """The end of a message about an unknown name: it may be that of a broken extension."""
    from bridge.cli.extension_commands import extension_commands  # noqa: PLC0415 - slow
    from bridge.entry_points import mending  # noqa: PLC0415 - slow

    return mending(extension_commands()[1])


def _unwritten(error: OSError) -> int:
    """Exit code for a system error; a closed pipe (`| head`) is not reported."""
    to_output = error.filename is None
    if to_output:  # otherwise Python tries to write it again at exit
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 1
    where = "cannot write" if to_output else str(error.filename)
    return _fail(f"{where}: {error.strerror or error}", 1)


def _version() -> str:
    import importlib.metadata  # noqa: PLC0415 - slow, and only for --version

    try:
        return importlib.metadata.version("schedbridge")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def usage() -> str:
    """What `schedbridge --help` prints."""
    lines = [
        "Usage: schedbridge COMMAND [ARGUMENTS]   (schedbridge COMMAND --help says more)",
        "",
        "A scheduling service beside Slurm: planned starts, node maps and reasons.",
        "",
        *_listed(_site_commands()),
        f"  {_LAB:<19}Simulate, compare and record: schedbridge {_LAB} --help lists its commands.",
        "",
        f"  {'--version':<19}Show the version.",
    ]
    return "\n".join(lines) + "\n"


def lab_usage() -> str:
    """What `schedbridge lab --help` prints."""
    lines = [
        f"Usage: schedbridge {_LAB} COMMAND [ARGUMENTS]",
        "",
        "The laboratory: simulations, experiments and recordings. No cluster depends on it.",
        "",
        *_listed(_lab_commands()),
    ]
    return "\n".join(lines) + "\n"


def _listed(commands: Mapping[str, str]) -> list[str]:
    return [f"  {name:<19}{summary}" for name, summary in commands.items()]


def _site_commands() -> dict[str, str]:
    own = {name: summary for name, (_, _, summary) in COMMANDS.items() if " " not in name}
    return own | {name: each[2] for name, each in commands().items() if name not in COMMANDS}


def _lab_commands() -> dict[str, str]:
    return {
        name.removeprefix(f"{_LAB} "): summary
        for name, (_, _, summary) in COMMANDS.items()
        if " " in name
    }


def module_of(name: str) -> str:
    """The module of a command."""
    if name not in COMMANDS:
        return commands()[name][0]
    module, _, _ = COMMANDS[name]
    return module if module.startswith("bridge.") else f"bridge.cli.{module}"


def _run(name: str, arguments: list[str]) -> None:
    import typer  # noqa: PLC0415 - --help needs no typer

    _, attribute, _ = COMMANDS.get(name) or commands()[name]
    found = getattr(importlib.import_module(module_of(name)), attribute)
    app = found
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(name.rsplit(maxsplit=1)[-1])(found)
    app(args=arguments, prog_name=f"schedbridge {name}")


def _fail(message: str, code: int) -> int:
    for line in message.splitlines():
        shown = "".join(sign if sign.isprintable() else "?" for sign in line[:_LONGEST])
        end = "..." if len(line) > _LONGEST else ""
        with contextlib.suppress(OSError):  # standard error may be closed, too
            print(f"schedbridge: {shown}{end}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
