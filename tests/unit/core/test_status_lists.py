# SPDX-License-Identifier: Apache-2.0
"""Lists of a C library, read as dictionaries."""

import ctypes
import itertools

from bridge.core._core import read_status_lists


class Attribute(ctypes.Structure):
    pass


Attribute._fields_ = [
    ("next", ctypes.POINTER(Attribute)),
    ("name", ctypes.c_char_p),
    ("resource", ctypes.c_char_p),
    ("value", ctypes.c_char_p),
    ("comparison", ctypes.c_int),
]


class Status(ctypes.Structure):
    pass


Status._fields_ = [
    ("next", ctypes.POINTER(Status)),
    ("name", ctypes.c_char_p),
    ("attributes", ctypes.POINTER(Attribute)),
    ("text", ctypes.c_char_p),
]


def linked(parts):
    for part, following in itertools.pairwise(parts):
        part.next = ctypes.pointer(following)
    return parts


def read(objects):
    """Makes the lists in memory, and reads them."""
    held = []
    for _, attributes in objects:
        held.append(linked([Attribute(None, *each, 0) for each in attributes]))
    made = linked(
        [
            Status(None, name, ctypes.pointer(parts[0]) if parts else None, None)
            for (name, _), parts in zip(objects, held, strict=True)
        ]
    )
    return read_status_lists(ctypes.addressof(made[0]) if made else 0)


def test_no_list_is_no_object():
    assert read([]) == {}


def test_objects_keep_their_order_and_their_attributes():
    found = read(
        [
            (b"2.srv", [(b"job_state", None, b"Q"), (b"queue", b"", b"workq")]),
            (b"1.srv", []),
        ]
    )
    assert list(found.items()) == [("2.srv", {"job_state": "Q", "queue": "workq"}), ("1.srv", {})]


def test_values_of_resources_are_a_dictionary():
    attributes = [(b"List", b"ncpus", b"4"), (b"state", None, b"free"), (b"List", b"mem", b"1gb")]
    assert read([(b"n1", attributes)]) == {
        "n1": {"List": {"ncpus": "4", "mem": "1gb"}, "state": "free"}
    }


def test_repeated_values_are_joined():
    attributes = [(b"depend", None, b"a"), (b"depend", None, b"b"), (b"depend", None, b"c")]
    assert read([(b"n1", attributes)]) == {"n1": {"depend": "a,b,c"}}


def test_what_is_missing_is_empty_and_odd_bytes_are_replaced():
    found = read([(b"n1", [(b"comment", None, None), (b"owner", None, b"a\xff\xc3\xa4")])])
    assert found == {"n1": {"comment": "", "owner": "a\ufffd\u00e4"}}


def test_equal_names_are_the_same_text():
    found = read([(b"1", [(b"job_state", None, b"Q")]), (b"2", [(b"job_state", None, b"R")])])
    first, second = (next(iter(attributes)) for attributes in found.values())
    assert first is second
