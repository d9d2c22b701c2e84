"""Change sound inputs so that they are wrong in one or a few places: messages, bytes, JSON, text, words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

NUMBERS = (0, 1, -1, 2, 3, 7, 64, 65, 100, 101, 119, 177, 1 << 16, 10**8, (1 << 31) - 1, -(1 << 31))
LONG_NUMBERS = (*NUMBERS, 1 << 32, (1 << 63) - 1, -(1 << 63))
NAMES = (
    "", "a", "x", "sum", "^x", "^sum", "x:1", "x:99999999999", "sum:0", "split:1", "split:2", "split:-1", ":0", "a b",
    "-a", "_a", "a>b", "a>", ">a", "a/", "/a", "größe", "a\nb", "\x1b[31m", "x" * 3000, "loc:@nobody", "loc:@sum", "T",
    "N", "dtype", "NoSuchOp", "Neg", "Const", "NoOp", "AddN", "twice", "other", "_Arg", "_Retval", "BatchMatMul",
    "GraphDefVersion", "/device:GPU:7", "/job:nobody", "/cpu:0", "gpu:0", "/device:GPU:" + "9" * 30, "SAME", "EXPLICIT",
    "loop", "If", "While", "PartitionedCall", "SymbolicGradient", "Merge", "NextIteration", "Enter", "Switch",
)  # fmt: skip
FLOATS = (0.0, -1.0, 1e300, float("inf"), float("nan"))


def mutate_message(message: Any, rng: random.Random, count: int = 0) -> None:
    """Change a message in place, `count` times (0: once, or rarely a few times)."""
    for _ in range(count or rng.choice((1, 1, 1, 1, 2, 4))):
        owner = _pick(message, rng)
        if owner.DESCRIPTOR.fields:  # there is a message that means None
            _change(owner, rng.choice(owner.DESCRIPTOR.fields), rng)


def _pick(message: Any, rng: random.Random) -> Any:
    """Choose a message within a message, those deep down about as often as those on top."""
    for _ in range(20):
        inside = [each for field, value in message.ListFields() for each in _messages(field, value)]
        if not inside or rng.random() < 0.25:
            return message
        message = rng.choice(inside)
    return message


def _messages(field: Field, value: Any) -> list[Any]:
    if field.type != Field.TYPE_MESSAGE:
        return []
    if _is_map(field):
        is_of_messages = field.message_type.fields_by_name["value"].type == Field.TYPE_MESSAGE
        return [value[key] for key in sorted(value)] if is_of_messages else []
    return list(value) if _is_list(field) else [value]


def _is_list(field: Field) -> bool:
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == Field.LABEL_REPEATED


def _is_map(field: Field) -> bool:
    return field.type == Field.TYPE_MESSAGE and bool(field.message_type.GetOptions().map_entry)


def _change(owner: Any, field: Field, rng: random.Random) -> None:
    if _is_map(field):
        _change_map(getattr(owner, field.name), field, rng)
    elif _is_list(field):
        _change_list(owner, field, rng)
    elif rng.random() < 0.2:
        owner.ClearField(field.name)
    elif field.type == Field.TYPE_MESSAGE:
        getattr(owner, field.name).SetInParent()
    else:
        _set(owner, field, rng)


def _change_map(values: Any, field: Field, rng: random.Random) -> None:
    keys = sorted(values)  # a map has no order of its own
    value_field = field.message_type.fields_by_name["value"]
    if keys and rng.random() < 0.6:
        del values[rng.choice(keys)]
    elif value_field.type == Field.TYPE_MESSAGE:
        has_names = field.message_type.fields_by_name["key"].type == Field.TYPE_STRING
        mutate_message(values[rng.choice([*keys, *(NAMES if has_names else (0, 1, 99))])], rng, 1)
    elif value_field.type == Field.TYPE_STRING:
        values[rng.choice([*keys, "a", "zz"])] = rng.choice(NAMES)


def _change_list(owner: Any, field: Field, rng: random.Random) -> None:
    values = getattr(owner, field.name)
    how = rng.random()
    if values and how < 0.3:
        del values[rng.randrange(len(values))]
    elif values and how < 0.5:
        _append(values, field, values[rng.randrange(len(values))])
    elif len(values) > 1 and how < 0.65:
        copies = list(values)
        rng.shuffle(copies)
        copies = [_copy(each) for each in copies]
        del values[:]
        values.extend(copies)
    elif field.type == Field.TYPE_MESSAGE:
        mutate_message(values.add(), rng, 1)
    elif values and how < 0.85:
        values[rng.randrange(len(values))] = _value(field, rng)
    else:
        values.append(_value(field, rng))


def _append(values: Any, field: Field, value: Any) -> None:
    if field.type == Field.TYPE_MESSAGE:
        values.add().CopyFrom(value)
    else:
        values.append(value)


def _copy(value: Any) -> Any:
    if not hasattr(value, "CopyFrom"):
        return value
    copy = type(value)()
    copy.CopyFrom(value)
    return copy


def _set(owner: Any, field: Field, rng: random.Random) -> None:
    setattr(owner, field.name, _value(field, rng))


def _value(field: Field, rng: random.Random) -> Any:
    kind = field.type
    if kind == Field.TYPE_STRING:
        return rng.choice(NAMES)
    if kind == Field.TYPE_BYTES:
        return rng.choice((*(name.encode() for name in NAMES), b"\xff", bytes(3000)))
    if kind == Field.TYPE_BOOL:
        return rng.random() < 0.5
    if kind in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return rng.choice(FLOATS)
    if kind in (Field.TYPE_INT64, Field.TYPE_SINT64, Field.TYPE_SFIXED64):
        return rng.choice(LONG_NUMBERS)
    if kind in (Field.TYPE_UINT64, Field.TYPE_UINT32, Field.TYPE_FIXED32, Field.TYPE_FIXED64):
        return abs(rng.choice(NUMBERS))
    return rng.choice(NUMBERS)  # an enum has no closed set of numbers


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change, cut, repeat or insert bytes, once or a few times."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(changed) + 1)
        stop = min(len(changed), at + rng.choice((1, 2, 8, 64)))
        how = rng.randrange(6)
        if how == 0:
            changed[at:stop] = bytes(rng.randrange(256) for _ in range(stop - at))
        elif how == 1:
            del changed[at:stop]
        elif how == 2:
            changed[at:at] = changed[at:stop] * rng.choice((1, 2, 100))
        elif how == 3:
            changed[at:at] = rng.choice((b"\0", b"\xff" * 10, b"[" * 2000, b"{" * 2000, b"9" * 5000, b"\x1b[2J", b"\n"))
        elif how == 4 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        else:
            del changed[at:]
    return bytes(changed)


MANY = (10, 1000, 10**5, 10**7)
_LENGTH_DELIMITED = 2  # the wire type of messages, strings and packed numbers


def flood_message(descriptor: Any, rng: random.Random) -> bytes:
    """Return what to append to an encoded message: up to millions of tiny values of a list somewhere in it."""
    inside = [field for field in descriptor.fields if field.type == Field.TYPE_MESSAGE]
    lists = [field for field in descriptor.fields if _is_list(field)]
    if not descriptor.fields:
        return b""
    if not lists or (inside and rng.random() < 0.6):
        field = rng.choice(inside or descriptor.fields)
        content = flood_message(field.message_type, rng) if inside else bytes(rng.choice(MANY))
        return _encoded(field.number, content)
    field, count = rng.choice(lists), rng.choice(MANY)
    if field.type in (Field.TYPE_MESSAGE, Field.TYPE_STRING, Field.TYPE_BYTES):
        return _encoded(field.number, b"") * count
    return _encoded(field.number, b"\1" * count)


def _encoded(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])


FLOODS = (
    "node{}",
    "node{name:'a'}",
    "library{function{}}",
    "\n",
    "#",
    '""',
    "{",
    "versions{bad_consumers:1}",
    "node<>",
)


def flood_text(text: str, rng: random.Random) -> str:
    """Repeat a piece of text up to millions of times somewhere in a text."""
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(FLOODS) * rng.choice(MANY[1:]) + text[at:]


VALUES: Sequence[Any] = (
    None, True, False, 0, -1, 10**8, 10**400, 1e308, "", "x" * 3000, "\0", "float77", [], [[]], {}, {"a": 1},
    [None, None], "Dense", "\x1b[31m",
)  # fmt: skip


def mutate_json(value: Any, rng: random.Random) -> Any:
    """Return a value with one part replaced, dropped, repeated or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: mutate_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        if rng.random() < 0.15:
            return [*value[:at], *value[at + 1 :]]
        if rng.random() < 0.15:
            return [*value, value[at]]
        return [*value[:at], mutate_json(value[at], rng), *value[at + 1 :]]
    nested: Any = value
    for _ in range(rng.choice((1, 50, 300))):
        nested = [nested]
    return rng.choice((*VALUES, nested))


TOKENS = (
    "9" * 30, "9" * 5000, "-1", "nan", "inf", "1e999", "0x" + "f" * 6000, "[" * 2000, "true", "''", "'x'", '"""', "=",
    ",", ".", "a." * 200, "\0", "\x1b[31m", "größe", "\n", "[[gpu]]\n", "[[task]]\n", "*", ":", "+", "x", "/",
    "1" * 9, "100000000", " ", "..", "%s", "{", "}", "#", "2x", "99999999x",
)  # fmt: skip


def mutate_text(text: str, rng: random.Random) -> str:
    """Replace, insert or drop a piece of a text, once or a few times."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        stop = min(len(text), at + rng.choice((0, 1, 3, 10)))
        text = text[:at] + rng.choice((*TOKENS, "")) + text[stop:]
    return text


LITERALS = (
    "0", "-1", "1", "64", "65", "100000000", "9" * 30, "9" * 5000, "0x" + "f" * 30, "nan", "inf", "-inf", "1e400",
    "1.5", "true", "''", "'nan GiB'", "'1e9 GiB'", "'" + "9" * 400 + " GiB'", "'-1 GiB'", "'16 gib'", "[]", "[1, 1]",
    "['1 GiB']",
    "[0, 0]", "[" * 150 + "]" * 150, "{}", "{a = 1}", "[{}]", "1979-05-27", "'\\u001b[31m'", "'*'", "'T: list(type)'",
    "['x: N * T']", "['N: int = 99999999999999999999']", "['T: {float'] ", "['f: func']", "'größe'",
)  # fmt: skip


def mutate_values(text: str, rng: random.Random) -> str:
    """Replace what is assigned in a line of TOML, or repeat a line, once or a few times."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(lines))
        name, equals, _ = lines[at].partition(" = ")
        lines[at:at] = [lines[at]] * (rng.random() < 0.1)
        if equals:
            lines[at] = f"{name} = {rng.choice(LITERALS)}"
    return "\n".join(lines)


def mutate_words(words: Sequence[str], rng: random.Random) -> list[str]:
    """Change, drop, repeat or add a word of a command line."""
    changed = list(words)
    at = rng.randrange(1, len(changed))
    kind = rng.randrange(5)
    if kind == 0:
        del changed[at]
    elif kind == 1:
        changed.insert(
            at, rng.choice(("-o", "--json", "--devices", "--costs", "--kernels", "--soft", "--bogus", "--", "-"))
        )
    elif kind == 2:
        changed.insert(at, changed[at])
    else:
        changed[at] = mutate_text(changed[at], rng)
    return changed
