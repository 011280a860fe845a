# SPDX-License-Identifier: Apache-2.0
"""Whether two frozen nouns are the same, column by column, type by type."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from bridge.model.parts import Parts


def assert_alike(one, other, where=""):
    """Fails with the first place at which they differ."""
    assert type(one) is type(other), f"{where}: {type(one)} and {type(other)}"
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, f"{where}: {one.dtype} and {other.dtype}"
        assert one.shape == other.shape, f"{where}: {one.shape} and {other.shape}"
        if one.dtype == object:
            for at, pair in enumerate(zip(one, other, strict=True)):
                assert_alike(*pair, f"{where}[{at}]")
        else:
            assert (one == other).all(), where
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_alike(
                getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}"
            )
    elif isinstance(one, tuple):
        assert len(one) == len(other), where
        for at, pair in enumerate(zip(one, other, strict=True)):
            assert_alike(*pair, f"{where}[{at}]")
    elif isinstance(one, Parts):
        assert one.keys() == other.keys(), where
        for name, part in one.items():
            assert_alike(part, other[name], f"{where}.{name}")
    elif isinstance(one, Mapping):
        assert one == other, where
    else:
        assert one == other, f"{where}: {one!r} and {other!r}"
