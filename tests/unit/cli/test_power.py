# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.extensions.power.commands.tables import plot
from bridge.rpc.pb import operator_pb2 as pb

NOWHERE = ("--socket", "/nowhere/s")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "give bounds as 1700W-2500W, --lower or --upper; or --undo, --restore or --list"),
        (["1700W"], "LOWER-UPPER: must be two powers as 1700W-2500W, not '1700W'"),
        (["2500W-1700W"], "LOWER-UPPER: '2500W-1700W' has its lower bound above the upper one"),
        (["1kW-2mW"], "LOWER-UPPER: is in milliwatts ('2mW'): write MW for megawatts"),
        (["1W-2W", "--upper", "3W"], "give LOWER-UPPER, or --lower and --upper, not both"),
        (["--lower", "none"], "--lower: must be a power as 1700W, 2.5kW or 0.8MW, not 'none'"),
        (["--upper", "lots"], "--upper: must be a power"),
        (["--upper", "1.5W"], "--upper: '1.5W' is not a whole number of watts"),
        (["--upper", "1W", "--until", "soon"], "is not a time (2026-12-24T18:00"),
        (["--upper", "1W", "--from", "now", "--until", "2001-01-01"], "is not after"),
        (["--upper", "1W", "--until", "now+1hour", "--for", "1h"], "--until or --for, not both"),
        (["--upper", "1W", "--for", "0h"], "is not a duration"),
        (["--upper", "1W", "--from", "1969-01-01"], "lies before 1970"),
        (["--undo", "--list"], "give one of --undo and --list"),
        (["--undo", "seven"], "ID: 'seven' is not an entry's ID"),
        (["--undo", "--for", "1h"], "--undo takes no bounds, times or reason"),
        (["--restore"], "ID: which entry: --restore ID; see"),
        (["--list", "7"], "--list takes no other arguments"),
        (["--upper", "1W"], "no service at /nowhere/s"),
    ],
)
def test_what_is_wrong_is_one_line(schedbridge, words, problem):
    code, out, err = schedbridge("power", "corridor", *words, *NOWHERE)
    assert (code, out) == (1, "")
    assert problem in err
    assert err.count("\n") == 1


def test_help_teaches(schedbridge):
    code, out, _ = schedbridge("power", "corridor", "--help")
    assert code == 0
    for words in ("1700W-2500W", "--for 2h", "--dry-run", "The upper bound is a rule"):
        assert words in " ".join(out.split())


def a_reply(steps, planned):
    return pb.PowerReply(
        steps=[
            pb.CorridorStep(from_s=a, until_s=b, lower_w=low, upper_w=up) for a, b, low, up in steps
        ],
        planned=[pb.PowerStep(from_s=a, until_s=b, estimate_w=w) for a, b, w in planned],
    )


def test_the_plot_shows_bounds_and_plan():
    reply = a_reply(
        [(0, 7200, 100, 900), (7200, 14_400, 0, -1)], [(0, 3600, 500), (3600, 14_400, 200)]
    )
    rows = [line.split("|")[1] for line in plot(reply) if "|" in line]
    assert rows[0] == "=" * 36 + " " * 36
    assert rows[4] == "#" * 18 + " " * 54
    assert rows[7] == "#" * 72
    assert rows[8] == "-" * 36 + "#" * 36
    assert next(iter(plot(reply))).startswith("      900 W |")


@pytest.mark.parametrize("steps", [[(5, 6, 0, -1)], [(0, 86_400, 0, 0)], [(0, 3, 10**12, 10**12)]])
def test_odd_spans_and_bounds_can_be_plotted(steps):
    assert len(list(plot(a_reply(steps, [])))) == 12
