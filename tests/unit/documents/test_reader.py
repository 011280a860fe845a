# SPDX-License-Identifier: Apache-2.0
"""The reader of pages, and what it refuses: nothing in a page is left out in silence."""

import subprocess

import pytest

from tests.documents import inline, listing, parsing
from tests.documents.following import Follower
from tests.documents.marks import BadMark, Drawing, Load, NotRun, Output, Run, parse
from tests.documents.pages import Block, Inline, read
from tests.documents.stated import missing

PAGE = """# A page

<!-- cluster: --nodes 2 -->
<!-- a remark for readers of the source -->
1. Do this:

   <!--
   run: login
   user: alice
   first: |
     true
   -->
   ```
   squeue
     indented
   ```

<!-- output: above -->
```
JOBID
```

<!-- not run: needs a machine of another kind -->
```
reboot
```

```yaml
policy: easy
```

Type `schedbridge status` and
`schedbridge plan
--json`.
"""


def test_blocks_have_the_marks_before_them() -> None:
    page = read("a.md", PAGE)
    kinds = [type(block.mark) for block in page.blocks]
    assert kinds == [Run, Output, NotRun, type(None)]
    assert page.blocks[0].text == "squeue\n  indented\n"
    assert page.blocks[0].mark.user == "alice"
    assert [block.line for block in page.blocks] == [13, 19, 24, 28]
    assert page.cluster.cluster == "--nodes 2"
    assert [span.text for span in page.inlines] == ["schedbridge status", "schedbridge plan --json"]
    assert page.faults == ()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<!-- run: moon -->\n```\nls\n```\n", "run: Input should be"),
        ("<!-- run: host\nusers: alice -->\n```\nls\n```\n", "users: Extra inputs"),
        ("<!-- not run: why -->\n```\nls\n```\n", "at least 8"),
        ("<!-- run: host -->\nThen:\n```\nls\n```\n", "stands before no block"),
        ("<!-- run: [host -->\n```\nls\n```\n", "is not YAML"),
        ("<!-- output: above -->\n```\nls\n```\n", "the output of no command"),
        (
            "<!-- run: host -->\n```\nls\n```\n<!-- not run: no such machine -->\n```\nls\n```\n"
            "<!-- output: above -->\n```\na\n```\n",
            "the output of no command",
        ),
        ("<!-- cluster: --nodes 2 -->\n<!-- cluster: --nodes 3 -->\n", "more than one cluster"),
    ],
)
def test_a_mark_that_says_nothing_is_a_fault(text: str, fault: str) -> None:
    (found,) = read("a.md", text).faults
    assert fault in found


def test_a_mark_in_a_block_is_text() -> None:
    page = read("a.md", "<!-- drawing: of a mark -->\n```\n<!-- run: moon -->\n```\n")
    assert page.faults == ()
    assert isinstance(page.blocks[0].mark, Drawing)


def test_kinds_of_marks() -> None:
    assert isinstance(parse("load: configuration"), Load)
    assert parse("headline figures") is None
    with pytest.raises(BadMark):
        parse("load: novel")


OUTPUT = "head\nJob 12 starts at 10:05:01\nn[1-4]   idle\nother\ntail 3.5 s\n"


@pytest.mark.parametrize(
    ("stated", "there"),
    [
        ("Job 7 starts at 23:59:59\nn[3-9] idle", True),
        ("head\n...\ntail 0.1 s", True),
        ("head\ntail 3.5 s", False),  # not next to each other
        ("n[1-4] idle\nJob 12 starts at 10:05:01", False),  # in another order
        ("Job 12 ends at 10:05:01", False),
        ("head\n...\nhead", False),
    ],
)
def test_stated_output_is_found_in_what_was_printed(stated: str, there: bool) -> None:
    assert (missing(stated, OUTPUT) == "") is there


class _Place:
    """Answers scripts from a table, and remembers them."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers, self.scripts = answers, []

    def run(self, script, mark):
        self.scripts.append(script)
        code, text = self.answers.get(script.split()[0], (0, ""))
        return subprocess.CompletedProcess(script, code, text)

    def put(self, mark) -> None:
        pass


def _blocks(*given: tuple[str, str]) -> list[Block]:
    return [Block("a.md", at, "", text, parse(mark)) for at, (mark, text) in enumerate(given)]


def test_a_follower_runs_what_belongs_to_a_block() -> None:
    place = _Place(id=(0, "41\n"), show=(0, "job 41 waits\n"))
    follower = Follower(lambda mark: place)
    follower.follow(
        _blocks(
            (
                "run: host\nfirst: one\nthen: two\nwhere: {'12': id}",
                "show 12 123",
            ),
            ("output: above", "job 12 waits"),
        )
    )
    assert place.scripts == ["one", "id", "show 41 123", "two"]
    assert follower.faults == []


@pytest.mark.parametrize(
    "given",
    [
        [("run: host", "bad")],
        [("run: host\nfirst: bad", "good")],
        [("run: host\nthen: bad", "good")],
        [("run: host\nexits: 1", "good")],
        [("run: host", "good"), ("output: above", "better")],
        [("run: host", "good"), ("output: bad", "fine")],
        [("run: host", "$ good\nbetter")],
        [("run: host\nlines: file\nthen: bad", "good")],
    ],
)
def test_a_follower_reports_what_a_page_does_not_keep(given) -> None:
    place = _Place(good=(0, "fine\n"), bad=(3, "no\n"))
    follower = Follower(lambda mark: place)
    follower.follow(_blocks(*given, ("run: host", "good"), ("output: above", "fine")))
    assert len(follower.faults) == 1
    assert place.scripts[-1] == "good"  # one block does not stop the others


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("schedbridge status --json", ""),
        ("schedbridge power corridor --list", ""),
        ("schedbridge elastic grow|shrink|hold JOB", ""),
        ("schedbridge coschedule export [FILE]", ""),
        ("schedbridge lab simulate --out", ""),
        ("schedbridge run -- prog --its-own", ""),
        ("schedbridge pbs-link --log-level LEVEL --log-format=json|text", ""),
        ("schedbridge statuses", "no command statuses"),
        ("schedbridge power corridors", "no command power corridors"),
        ("schedbridge elastic grow|widen JOB", "no command elastic widen"),
        ("schedbridge status --jsonn", "No such option: --jsonn"),
        ("schedbridge status extra", "nothing takes extra"),
        ("schedbridge --verbose", "no option --verbose"),
        ("schedbridge elastic grow 120_3 four", "valid integer"),
        ("schedbridge pbs-link --log-level loud", "'loud' is not one of"),
        ("schedbridge pbs-link --log-format=xml|text", "'xml' is not one of"),
        ("scripts/cluster up --nodes N --scheduler NAME --gres", ""),
        ("scripts/cluster up --nodes eight", "invalid int value: 'eight'"),
        ("scripts/cluster up --scheduler fifo", "invalid choice: 'fifo'"),
        ("scripts/cluster fly", "invalid choice: 'fly'"),
        ("scripts/test pbs -k name", ""),
        ("scripts/test pbss", "no suite pbss"),
        ("scripts/demo --job 5", "No such option: --job"),
        ("scripts/docker-engine", ""),
        ("scripts/docker-engine --fast", "nothing here parses"),
        ("scripts/nothing", "no program scripts/nothing"),
    ],
)
def test_commands_in_sentences_are_parsed_by_the_real_parsers(text: str, problem: str) -> None:
    found = parsing.problems(text)
    assert len(found) == bool(problem)
    assert problem in "".join(found)


def test_commands_in_sentences_are_told_from_other_words() -> None:
    text = "`sbatch --hold`, `sbatch`, `scripts/test`, `schedbridge`, `x --y`, `qstat --no-such`"
    spans = list(inline.commands_in(read("x.md", text)))
    assert [s.text for s in spans] == ["sbatch --hold", "scripts/test", "qstat --no-such"]


def test_what_becomes_of_a_command_is_listed() -> None:
    text = "`scripts/cluster up`, `sbatch -Z`, `systemctl stop x`, `schedbridge elastic hold JOB`"
    said = [listing.done_with_span(span) for span in inline.commands_in(read("x.md", text))]
    begins = ("run: a block of ", "parsed by the program itself", "not run", "parsed by")
    assert all(one.startswith(begin) for one, begin in zip(said, begins, strict=True))
    with pytest.raises(KeyError):
        listing.done_with_span(Inline("x.md", 1, "unknown --option"))
