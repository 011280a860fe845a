# SPDX-License-Identifier: Apache-2.0
import re
import textwrap
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, RootModel

from bridge.errors import ConfigError
from bridge.input_problems import ConfigProblems
from bridge.registry import choices
from bridge.service.config import ServiceConfig, load, parse, to_mapping

DOCUMENT = Path(__file__).parents[3] / "docs" / "CONFIG.md"


@pytest.mark.parametrize("text", ["", "# nothing\n", "metrics:\n", "{}"])
def test_an_empty_file_is_a_configuration(text):
    assert parse(text, "f") == ServiceConfig()


def test_what_is_printed_is_read_again():
    config = parse("policy: {plan: {name: easy, depth: 3}}\ncontroller: {users: [root, 7]}", "f")
    again = parse(yaml.safe_dump(to_mapping(config)), "f")
    assert again.policy_spec == config.policy_spec
    assert again.controller == config.controller


PROBLEMS = {
    "unknown section": ("polcy: x", ["f.yaml: polcy: unknown key; there are controller, "]),
    "unknown key": ("controller: {sokket: x}", ["controller.sokket: unknown key; there are "]),
    "no section": ("controller: 3", ["controller: must be a section of keys, not 3"]),
    "no file name": ("topology: 5", ["topology.file: must be a file name, not 5"]),
    "wait for nothing": ("topology: {wait_s: 60}", ["topology: wait_s needs the file"]),
    "no list": ("planning: {limits: 3}", ["planning.limits: must be a list, not 3"]),
    "no number": ("controller: {retry_s: soon}", ["controller.retry_s: ", "not 'soon'"]),
    "too small": ("controller: {retry_s: 0}", ["controller.retry_s: ", "not 0"]),
    "relative": ("controller: {socket: run/x.sock}", ["controller.socket: must be an abs"]),
    "long path": (f"controller: {{socket: /{'x' * 120}}}", ["longer than the 107 bytes"]),
    "no users": ("controller: {users: []}", ["controller.users: "]),
    "same socket": (
        "controller: {socket: /a/x}\noperator: {socket: /a/x}", ["must differ"],
    ),
    "same directory": (
        "controller: {socket: /a/x}\noperator: {socket: /a/y}", ["different directories"],
    ),
    "tls without keys": (
        "controller: {tls: {address: 'h:1'}}",
        ["controller.tls.ca: is missing", "controller.tls.cert: is missing",
         "controller.tls.key: is missing", "controller.tls.subjects: is missing"],
    ),
    "tls for everybody": (
        "controller: {tls: {address: 'h:1', ca: a, cert: b, key: c, subjects: []}}",
        ["controller.tls.subjects: "],
    ),
    "plain tcp": ("controller: {address: '0.0.0.0:5'}", ["controller.address: unknown key"]),
    "no port": ("metrics: {address: localhost}", ["metrics.address: must be HOST:PORT"]),
    "bad port": ("metrics: {address: 'h:99999'}", ["metrics.address: must be HOST:PORT"]),
    "level": ("log: {level: loud}", ["log.level: ", "'debug'"]),
    "preset": ("policy: magic", ["policy: no preset 'magic'; there are slurm-like"]),
    "stage": ("policy: {plan: magic}", ["policy.plan: no algorithm 'magic'"]),
    "parameter": ("policy: {plan: {name: easy, deep: 1}}", ["policy.plan.deep: "]),
    "several at once": (
        "policy: magic\nlog: {level: loud}\nx: 1", ["policy: ", "log.level: ", "x: unknown key"],
    ),
    "list": ("- 1", ["f.yaml: must be a mapping of sections"]),
    "twice": ("policy: easy\npolicy: easy", ["line 2, column 1: invalid YAML: key 'policy'"]),
    "yaml": ("a: [1", ["f.yaml: line 2, column 1: invalid YAML: did not find"]),
    "tab": ("controller:\n\tsocket: x", ["line 2, column 1: invalid YAML"]),
    "object": ("policy: !!python/object:os.system {}", ["invalid YAML: "]),
    "deep": ("[" * 5000, ["invalid YAML"]),
    "control characters": ("a: \x00", ["invalid YAML"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_every_problem_is_one_line_with_file_key_and_reason(text, expected):
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yaml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("f.yaml: ") for line in lines)
    for part in expected:
        assert any(part in line for line in lines), lines
    assert all(len(line) < 300 for line in lines)


def test_all_problems_are_there():
    with pytest.raises(ConfigProblems) as caught:
        parse("policy: magic\nlog: {level: loud}\nx: 1", "f")
    assert {problem.key for problem in caught.value.problems} == {"policy", "log.level", "x"}


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text file"):
        load(tmp_path / "bytes")


def test_a_topology_is_a_file_or_more():
    assert parse("topology: /etc/t.conf", "f").topology.file == Path("/etc/t.conf")
    assert parse("topology: null", "f").topology.file is None
    known = parse("topology: {file: /etc/t.conf, wait_s: 300}", "f").topology
    assert (known.file, known.wait_s) == (Path("/etc/t.conf"), 300)


@pytest.mark.parametrize("address", ["0.0.0.0:9619", "host:9619", "[::]:9619", "127.0.0.1"])
def test_events_are_taken_on_the_loopback_interface_only(address):
    with pytest.raises(ConfigProblems, match=r"power.events.address: must be"):
        parse(f"power: {{events: {{address: '{address}', token_file: /etc/t}}}}", "f")
    assert parse("power: {events: {address: '[::1]:9', token_file: /t}}", "f").power.events


# ------------------------------------------------------------------ docs/CONFIG.md


def models(annotation):
    """The models of a section, or of the entries of a list."""
    for option in [annotation, *getattr(annotation, "__args__", ())]:
        if isinstance(option, type) and issubclass(option, RootModel):
            yield from models(option.model_fields["root"].annotation)
        elif isinstance(option, type) and issubclass(option, BaseModel):
            yield option


def keys(model=ServiceConfig, prefix=""):
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = list(models(field.annotation))
        if inner:
            yield from keys(inner[0], f"{path}.")
        if not inner or field.default is None:
            yield path, field


KEYS = dict(keys())


def test_the_document_describes_every_key():
    lines = DOCUMENT.read_text().splitlines()
    rows = {key: [line for line in lines if line.startswith(f"| `{key}` |")] for key in KEYS}
    assert [key for key in KEYS if len(rows[key]) != 1] == []
    assert [key for key, field in KEYS.items() if field.description not in rows[key][0]] == []


def test_the_document_describes_no_other_key():
    named = set(re.findall(r"^\| `([a-z_.]+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    assert named == set(KEYS)


def test_the_document_names_every_algorithm():
    text = DOCUMENT.read_text()
    for names in choices().values():
        for name in names:
            assert f"`{name}`" in text


# ------------------------------------------------------------------ examples in documents


def examples():
    """Every example of a configuration in a document: its place and its text."""
    sections = {field.alias or name for name, field in ServiceConfig.model_fields.items()}
    for path in sorted(DOCUMENT.parent.glob("*.md")):
        blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", path.read_text(), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            text = textwrap.dedent(block)
            keys = set(re.findall(r"^([a-z_]+):", text, re.MULTILINE))
            if keys and keys <= sections:
                yield pytest.param(text, id=f"{path.stem}-{number}")


EXAMPLES = list(examples())


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_in_documents_are_read(text):
    found = yaml.safe_load(text)
    power = (found.get("planning") or {}).get("power")
    if power is not None and "nodes" not in power:  # an excerpt
        power["nodes"] = [{"name": "any", "idle": "1W", "max": "2W"}]
    parse(yaml.safe_dump(found, sort_keys=False), "example")


def test_documents_have_examples():
    assert len(EXAMPLES) > 10
