"""Shapes of copies: one log, as tools and people hand it over, is always the same lines."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.lines.blocks import Lines, Origin
from ingest.lines.copies import restore_order
from ingest.lines.framing import Framing
from tests.support.builders.log_shapes import CONTAINER, POD, SHAPES
from tests.support.growth import is_linear

LINES = [
    'I1121 03:06:23.217054   32118 scheduler.go:1068] "Starting schedule filter process" pod="a" namespace="llm"',
    '(v=4) I1121 03:06:23.218602  1 score.go:289] NodeUnfitPod pod="llm/a" node="n1" reason="2/2 CardNotHealth"',
    'E1121 03:06:24.000001   32118 scheduler.go:694] "Failed to lock node" err="node \\"n1\\" is locked"',
]


def split_lines(data: bytes, size: int = 1 << 30) -> list[str]:
    framing = Framing(Origin("log"))
    blocks = [framing.feed(data[start : start + size]) for start in range(0, len(data), size)]
    read = [lines for lines in [*blocks, framing.close()] if lines]
    return [text.decode(errors="replace") for lines in restore_order(read) for text in lines.texts]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_a_copy_is_the_same_lines(shape: str) -> None:
    read = [line for line in split_lines(SHAPES[shape](LINES).encode()) if line not in ("[", "]", "  {", "  },", "  }")]
    assert [line for line in read if "date" not in line] == LINES


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_shows_the_encoding(encoding: str) -> None:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    assert split_lines((mark + "\n".join(LINES)).encode(encoding)) == LINES


def test_fences_and_prose_around_the_lines_are_lines_of_their_own() -> None:
    pasted = "My pod waits:\n```log\n" + "\n".join(LINES) + "\n```\nWhy?\n"
    assert split_lines(pasted.encode()) == ["My pod waits:", "```log", *LINES, "```", "Why?"]


def test_a_copy_gives_the_time_that_stands_near_the_line() -> None:
    for shape in ("kubectl --prefix --timestamps", "logcli --output=jsonl", "Loki's API", "k9s"):
        lines = Framing(Origin("log")).feed((SHAPES[shape](LINES[:1]) + "\n").encode())
        assert lines is not None
        assert lines.times is not None
        first = lines.times[0]
        assert first is not None
        assert first.replace(microsecond=0) == datetime(2026, 11, 21, 3, 6, 23, tzinfo=UTC)


def test_a_value_of_several_lines_is_joined_behind_a_prefix() -> None:
    value = [LINES[0] + " err=<", "\tfirst", "\tsecond", ' > node="n1"', LINES[1]]
    for prefix in (f"[pod/{POD}/{CONTAINER}] ", "    ", "> "):
        data = "".join(f"{prefix}{line}\n" for line in value).encode()
        assert split_lines(data) == [LINES[0] + r' err="first\nsecond" node="n1"', LINES[1]]


def test_lines_of_kai_lose_their_prefix_too() -> None:
    console = "2026-11-21T03:06:23.217Z\tINFO\tactions/allocate.go:40\t[abc] [allocate] Enter Allocate ..."
    tagged = "[GPU_FILTER] Node <gpu-0>: Filtering GPUs for pod <team-a/infer-1>, requested gpu-memory: <3000 MB>"
    plain_json = '{"level":"info","ts":"2026-11-21T03:06:23.217Z","caller":"a/b.go:1","msg":"Enter"}'
    lines = [console, tagged, plain_json]
    for shape in ("kubectl --prefix", "stern", "quoted mail", "logcli --output=jsonl", "Kibana"):
        assert split_lines(SHAPES[shape](lines).encode()) == lines


def test_a_log_that_has_its_newest_line_first_is_turned_round() -> None:
    ordered = [f"I1121 03:06:{second:02}.000000 1 a.go:1] m" for second in range(60)]
    assert split_lines("\n".join(reversed(ordered)).encode(), size=100) == ordered
    # Threads write in any order within milliseconds: such a log is in its order.
    mixed = [*ordered[:30], ordered[28], *ordered[30:]]
    assert split_lines("\n".join(mixed).encode()) == mixed


def test_a_reversed_log_keeps_the_times_of_its_lines() -> None:
    moments = [datetime(2026, 11, 21, 3, 6, second, tzinfo=UTC) for second in (9, 8, 7)]
    texts = [f"I1121 03:06:0{moment.second}.000000 1 a.go:1] m".encode() for moment in moments]
    (lines,) = restore_order([Lines(Origin("log"), texts, times=moments)])
    assert list(zip(lines.texts, lines.times or (), strict=True)) == list(zip(texts, moments, strict=True))[::-1]


@given(st.text(max_size=200), st.integers(1, 7))
def test_any_text_is_read_without_an_error_and_however_it_is_cut(text: str, size: int) -> None:
    data = text.encode("utf-16")
    assert split_lines(data, size) == split_lines(data)


@pytest.mark.parametrize("piece", ['{"a":', "[", '"', "\\", "> ", "I1121 ", "(v=", "\t", '{"line":"'])
def test_a_line_of_repeated_pieces_takes_a_time_that_grows_with_its_length(piece: str) -> None:
    assert is_linear(lambda size: split_lines((piece * (size // len(piece)) + "\n").encode()), 100_000)
