"""Breaking what was whole, from a seed: bytes, JSON values, and texts that other programs stumbled over."""

import random
from typing import Any, Final

NAUGHTY: Final = (
    "", " ", "\x00", "a\x00b", "\x7f", "\u0085", "\u200b", "\ufeff", "\ufffe", "\u202e", "\u2028", "\r\n", "\t",
    "null", "undefined", "NaN", "Infinity", "-0", "1e999", "0x10", "true", "../../etc/passwd", "..\\..", "/dev/null",
    "CON", "*", "?", "%s%n", "%00", "${jndi:ldap://127.0.0.1/a}", "{{7*7}}", "$(id)", "`id`", "'; DROP TABLE pods;--",
    "<script>alert(1)</script>", "]]>", "<!--", "\\", '"', "\\u0000", "\\ud800", "Ω≈ç√∫", "田中さん", "社會科學院",
    "הָיְתָה", "ثم نفس", "👩‍👩‍👧‍👦", "🏳️‍🌈", "ﷺ", "Z̮̞̠͙͔ͅ", "ǅ", "ﬀ", "İ", "ß", "\U0010ffff", "a" * 70_000, "_index", "_source",
    "__proto__", "constructor", "schedulerlog-attempts", "2026-13-40T99:99:99Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z", "2026-11-21T00:00:00", "/", "a/b", "a/devices/0",
)  # fmt: skip
"""Texts in the manner of the lists of naughty strings."""

NUMBERS: Final = (
    0, -0.0, -1, -2, 1, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64,
    10**40, 0.1, -1.5, 1e308, 1e-320, 3.5e38,
)  # fmt: skip


def choose_value(chance: random.Random, depth: int = 3) -> Any:
    """Choose a JSON value of any type."""
    kind = chance.randrange(9 if depth else 6)
    if kind < 2:
        return chance.choice(NAUGHTY)
    if kind < 4:
        return chance.choice(NUMBERS)
    if kind < 6:
        return chance.choice([None, True, False])
    several = range(chance.randrange(4))
    if kind == 6:
        return {chance.choice(NAUGHTY)[:50]: choose_value(chance, depth - 1) for _ in several}
    return [choose_value(chance, depth - 1) for _ in several]


def change_value(value: Any, chance: random.Random) -> Any:
    """Change the value at one position: another value is there, or none, or the same twice."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(list(value))
        if chance.random() < 0.1:
            return {key: member for key, member in value.items() if key != name}
        return value | {name: change_value(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        index = chance.randrange(len(value))
        changed = chance.choice([[], [value[index]] * 2, [change_value(value[index], chance)]])
        return [*value[:index], *changed, *value[index + 1 :]]
    return choose_value(chance)


def change_bytes(data: bytes, chance: random.Random) -> bytes:
    """Change one to four parts of the bytes: set, cut out, repeated, put elsewhere, or cut off."""
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        start = chance.randrange(len(data))
        stop = min(start + chance.choice([1, 1, 1, 2, 8, 64]), len(data))
        data = chance.choice(
            [
                data[:start] + chance.randbytes(stop - start) + data[stop:],
                data[:start] + data[stop:],
                data[:stop] + data[start:stop] + data[stop:],
                data[:start]
                + chance.choice([b'"', b"[", b"{", b"}", b",", b"\\", b"\xff", b"e9", b"-"])
                + data[start:],
                data[:start],
            ]
        )
    return data
