import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.lines.blocks import LogPosition, Origin
from ingest.lines.framing import MAX_LINE_BYTES, Framing

KLOG = b'I1121 03:06:23.217054   32118 a.go:1] "m" pod="ml/a"'


def split_lines(data: bytes, size: int = 1 << 30) -> list[bytes]:
    framing = Framing(Origin("log"))
    blocks = [framing.feed(data[start : start + size]) for start in range(0, len(data), size)]
    return [text for lines in [*blocks, framing.close()] if lines for text in lines.texts]


@pytest.mark.parametrize(("raw", "text"), [
    (KLOG, KLOG),
    (KLOG + b"\r", KLOG),
    (b"\x1b[31m" + KLOG + b"\x1b[0m", KLOG),
    (b"2026-11-21T03:06:23.217054123Z stderr F " + KLOG, KLOG),
    (b"2026-11-21T03:06:23.217054123+08:00 stdout F " + KLOG, KLOG),
    (b"2026-11-21T03:06:23.217054123Z " + KLOG, KLOG),
    (json.dumps({"log": KLOG.decode() + "\n", "stream": "stderr", "time": "2026-11-21T03:06:23.2Z"},
                separators=(",", ":")).encode(), KLOG),
    (b'{"level":"info","msg":"zap"}', b'{"level":"info","msg":"zap"}'),
    (b"2026-11-21T03:06:23.217Z\tINFO\tx", b"2026-11-21T03:06:23.217Z\tINFO\tx"),
    (b"\xff\xfe invalid", b"\xff\xfe invalid"),
])  # fmt: skip
def test_prefixes_and_colours_are_removed(raw: bytes, text: bytes) -> None:
    assert split_lines(raw + b"\n" + raw + b"\n") == [text, text]


def test_the_runtimes_time_is_given_with_the_line() -> None:
    lines = Framing(Origin("log")).feed(b"2026-11-21T03:06:23.217054123+08:00 stderr F " + KLOG + b"\n")
    assert lines is not None
    assert lines.times is not None
    assert list(lines.times) == [datetime(2026, 11, 20, 19, 6, 23, 217054, UTC)]


def test_a_line_that_the_runtime_divided_is_one_line() -> None:
    stamp = b"2026-11-21T03:06:23.217054123Z stderr "
    assert split_lines(stamp + b"P " + KLOG[:20] + b"\n" + stamp + b"F " + KLOG[20:] + b"\n") == [KLOG]
    docker = [json.dumps({"log": part, "stream": "stderr"}, separators=(",", ":")) for part in ("one ", "two\n")]
    assert split_lines("\n".join(docker).encode() + b"\n") == [b"one two"]


def test_a_value_of_several_lines_is_one_quoted_value() -> None:
    text = KLOG + b' err=<\n\tfirst "one"\n\tsecond\n > node="n1"\n' + KLOG + b"\n"
    assert split_lines(text) == [KLOG + rb' err="first \"one\"\nsecond" node="n1"', KLOG]


def test_a_value_that_is_never_closed_is_its_lines() -> None:
    lines = [KLOG + b" err=<", b"\tfirst", KLOG]
    assert split_lines(b"\n".join(lines) + b"\n") == lines
    assert split_lines(b"\n".join(lines[:2])) == lines[:2]


def test_a_line_of_ten_megabytes_is_a_line() -> None:
    long = b"x" * (10 * 1024**2)
    assert [len(text) for text in split_lines(b"a\n" + long + b"\nb\n", size=1 << 20)] == [1, len(long), 1]


def test_the_beginning_of_an_endless_line_is_kept_and_later_places_are_right() -> None:
    framing = Framing(Origin("log"))
    block = b"x" * (1 << 20)
    for _ in range(20):
        assert framing.feed(block) is None
    lines = framing.feed(b"xx\nlast\n")
    assert lines is not None
    assert [len(text) for text in lines.texts] == [MAX_LINE_BYTES, 4]
    assert lines.end == LogPosition(20 * (1 << 20) + 3 + 5, 3)


def test_reading_continues_before_the_lines_that_were_held_back() -> None:
    framing = Framing(Origin("log"))
    held = KLOG + b" err=<\n\tfirst\n"
    lines = framing.feed(KLOG + b"\n" + held)
    assert lines is not None
    assert lines.end == LogPosition(len(KLOG) + 1, 2)


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_value_that_comes_in_two_pieces_does_not_move_the_place_after_it(cut: int) -> None:
    framing, data = Framing(Origin("log")), b"a\nerr=<\n\tone\n\ttwo\n >\nb\nc\n" + b"d" * 40 + b"\n"
    framing.feed(data[:cut])
    framing.feed(data[cut:])
    assert framing.end == LogPosition(len(data), 9)


STAMP = b"2026-11-21T03:06:23Z stderr "
PIECES = [
    KLOG,
    b"",
    b"\r",
    b"\x1b[1mx",
    KLOG + b" err=<",
    b"\tmore",
    b' > a="b"',
    b"20",
    STAMP + b"P x",
    STAMP + b"F y",
]
LINES = st.lists(st.sampled_from([*PIECES, b'{"log":"z"}', b'{"log":"z\\n"}', b"\xff"]))


@given(LINES, st.integers(1, 40))
def test_how_the_bytes_are_cut_does_not_matter(texts: list[bytes], size: int) -> None:
    data = b"\n".join(texts)
    assert split_lines(data, size) == split_lines(data)
