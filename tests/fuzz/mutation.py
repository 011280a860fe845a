# SPDX-License-Identifier: Apache-2.0
"""Makes senseless messages of good ones, by structure and by bytes."""

import random

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

EXTREMES = (
    0, 1, 2, 3, 59, 60, 255, 256, 1 << 15, 1 << 20, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31,
    (1 << 32) - 1, 1 << 32, (1 << 40) - 1, 1 << 40, 253_402_300_799, 253_402_300_800, 1 << 53,
    (1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
_BOUNDS = {
    Field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    Field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    Field.CPPTYPE_UINT32: (0, 2**32 - 1),
    Field.CPPTYPE_UINT64: (0, 2**64 - 1),
    Field.CPPTYPE_ENUM: (-(2**31), 2**31 - 1),
}
_FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e308, 5e-324)
_WORDS = (
    "", " ", "n0", "n1", "n[0-1]", "n[0-9999]", "n[", "n[1-2]x[3-4]", "n0,n0", ",", "batch", "gone",
    "1", "2", "1_1", "gpu", "gpu:v", "gpu:x:y", "a&b", "[a|b]", "a&(b|", "(" * 50 + "a" + ")" * 50,
    "a*2", "\x00", "\n", "\x1b[2J", "é", "\u202e", "\U0001f600", "%s%n", "../..",
    "2:ncpus=2", "2:ncpus=1:mem=10mb+1:ncpus=4", "1:ngpus=1+2", "scatter", "pack:excl", "pof2",
    "cubic", "even", "9" * 30, "-1", "lic", "maint",
)  # fmt: skip


def mutated(rng: random.Random, message: Message, times: int) -> None:
    """Changes a message in place so many times."""
    for _ in range(times):
        _change(rng, _somewhere(rng, message))


def mutated_bytes(rng: random.Random, raw: bytes) -> bytes:
    """Changes some bytes, takes some out, puts some in."""
    found = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(5):
            case 0 if found:
                found[at % len(found)] ^= 1 << rng.randrange(8)
            case 1 if found:
                found[at % len(found)] = rng.choice((0, 0x7F, 0x80, 0xFF))
            case 2:
                del found[at : at + rng.randint(1, 20)]
            case 3:
                found[at:at] = rng.randbytes(rng.randint(1, 20))
            case _:
                found[at:at] = found[at : at + rng.randint(1, 200)]
    return bytes(found)


def _somewhere(rng: random.Random, message: Message) -> Message:
    """A message at random among those inside, this one included; deeper ones are as likely."""
    while True:
        inside = [
            (field, value)
            for field, value in message.ListFields()
            if field.message_type is not None
        ]
        if not inside or rng.random() < 0.15:
            return message
        field, value = rng.choice(inside)
        message = rng.choice(value) if field.is_repeated else value


def _change(rng: random.Random, message: Message) -> None:
    field = rng.choice(message.DESCRIPTOR.fields)
    if field.is_repeated:
        _change_list(rng, message, field)
    elif field.message_type is not None:
        if rng.random() < 0.3:
            message.ClearField(field.name)
        else:
            _change(rng, getattr(message, field.name))
    else:
        setattr(message, field.name, _value(rng, field, getattr(message, field.name)))


def _change_list(rng: random.Random, message: Message, field: Field) -> None:
    items = getattr(message, field.name)
    kind = rng.randrange(5)
    if kind == 0 and items:
        del items[rng.randrange(len(items))]
    elif kind == 1 and items:
        items.extend([rng.choice(items)] * rng.choice((1, 1, 2, 30)))
    elif kind == 2 and len(items) > 1:
        kept = list(items)
        rng.shuffle(kept)
        del items[:]
        items.extend(kept)
    elif field.message_type is None:
        items.append(_value(rng, field, items[-1] if items else None))
    else:
        fresh = items.add()
        if len(items) > 1 and rng.random() < 0.7:
            fresh.CopyFrom(rng.choice(items[:-1]))
        for _ in range(rng.randint(1, 4)):
            _change(rng, fresh)


def _value(rng: random.Random, field: Field, before: object) -> object:
    if field.cpp_type == Field.CPPTYPE_STRING:
        return _text(rng, str(before or ""))
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type in (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT):
        return rng.choice(_FLOATS)
    if field.cpp_type == Field.CPPTYPE_ENUM and rng.random() < 0.8:
        return rng.choice(field.enum_type.values).number
    low, high = _BOUNDS[field.cpp_type]
    number = before if isinstance(before, int) else 0
    near = (number + 1, number - 1, number * 2, -number, number + rng.randint(-100, 100))
    chosen = rng.choice(near) if rng.random() < 0.4 else rng.choice(EXTREMES)
    if low < 0 and rng.random() < 0.2:
        chosen = -chosen
    return min(max(chosen, low), high)


def _text(rng: random.Random, before: str) -> str:
    word = rng.choice(_WORDS)
    match rng.randrange(8):
        case 0:
            return before + word
        case 1:
            return before[: rng.randint(0, len(before))] + word
        case 2:
            return ",".join([word] * rng.choice((2, 10, 1000)))
        case 3 if rng.random() < 0.1:
            return (word or "x") * rng.choice((100, 5000))
        case _:
            return word
