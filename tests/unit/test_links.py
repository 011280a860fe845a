# SPDX-License-Identifier: Apache-2.0
"""Links and paths in the documents lead to files and headings that are there."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
]  # fmt: skip
LINK = re.compile(r'\]\(([^()\s"]+)(?: "[^"]*")?\)')
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", path.read_text())


@cache
def anchors(path: Path) -> set[str]:
    """Those that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def leads_somewhere(path: Path, link: str) -> bool:
    """Whether a link of a page is to another host, or to a file and heading that are there."""
    if "://" in link or link.startswith("mailto:"):
        return True
    file, _, anchor = link.partition("#")
    target = (path.parent / file).resolve() if file else path
    return target.exists() and (not anchor or anchor in anchors(target))


def test_links_lead_somewhere() -> None:
    links = [(path, link) for path in DOCUMENTS for link in LINK.findall(prose(path))]
    assert [f"{path}: {link}" for path, link in links if not leads_somewhere(path, link)] == []


PATHS = re.compile(r"`((?:bridge|tests|benchmarks|scripts|docs|slurm_conf|proto)/[\w./-]+)`")


def test_paths_are_there() -> None:
    named = [(path, name) for path in DOCUMENTS for name in PATHS.findall(prose(path))]
    lost = [f"{path}: {name}" for path, name in named if not (ROOT / name.rstrip(".")).exists()]
    assert lost == []
