# SPDX-License-Identifier: Apache-2.0
"""Prints the fitted values as YAML for `planning.power.nodes`."""

import json
import re
from collections.abc import Iterator

from bridge.cli.operators.asking import shown
from bridge.errors import ConfigError
from bridge.rpc.pb import operator_pb2 as pb

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_YAML_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def check_fitted(reply: pb.CalibrateReply) -> None:
    """Makes sure that there is a result.

    Raises:
        ConfigError: nothing was fitted; says why.
    """
    if any(not kind.problem for kind in reply.types):
        return
    problems = dict.fromkeys(f"{shown(kind.name)}: {kind.problem}" for kind in reply.types)
    raise ConfigError("power calibrate", f"nothing can be fitted. {'; '.join(problems)}")


def yaml_lines(reply: pb.CalibrateReply) -> Iterator[str]:
    """The list `nodes`, with the source of each value; types that were not fitted are unchanged."""
    yield "# planning.power of the service's configuration; 'schedbridge check-config' checks it"
    yield "nodes:"
    for kind in reply.types:
        yield f"  # {_about(kind)}"
        stated = kind.HasField("stated_max_w")
        if kind.problem and not stated:
            yield f"  # - {{name: {_text(kind.name)}{_nodes(kind)}, idle: ?, max: ?}}"
            continue
        idle_w, max_w = (
            (kind.stated_idle_w, kind.stated_max_w) if kind.problem else (kind.idle_w, kind.max_w)
        )
        yield f"  - {{name: {_text(kind.name)}{_nodes(kind)}, idle: {idle_w}W, max: {max_w}W}}"


def _about(kind: pb.FittedPower) -> str:
    stated = ""
    if kind.HasField("stated_max_w"):
        stated = f"; stated were {kind.stated_idle_w} W to {kind.stated_max_w} W"
    if kind.problem:
        return f"not fitted: {kind.problem}{stated and ', as stated'}"
    return (
        f"{kind.readings:,} readings of {kind.metered} of {kind.node_count} nodes at loads of "
        f"{kind.least_load:.0%} to {kind.most_load:.0%}, 98 % of them within {kind.error_w} W of "
        f"the line{stated}"
    )


def _nodes(kind: pb.FittedPower) -> str:
    chosen = (("names", kind.names), ("features", kind.features), ("having", kind.having))
    parts = [f"{key}: {json.dumps(value)}" for key, value in chosen if value]
    return f", nodes: {{{', '.join(parts)}}}" if parts else ""


def _text(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS
    return name if plain else json.dumps(name)
