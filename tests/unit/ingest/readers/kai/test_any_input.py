"""Mutated lines and pieces of lines, which no scheduler writes, raise no error and don't stall the reader."""

import random

from ingest.readers.kai import KaiLog
from schemas.codec.records import Rejected, decode, encode
from schemas.events import Event
from tests.support.builders.kai_lines import CONSOLE, JSON, TAGS, block, read, read_texts, summarize_attempts

LINES = 20_000
PIECES = (b"<", b">", b"[", b"]", b"\t", b"\xff", b"", b"9" * 40, b"-1", b"{", b'"', b"\n", b"\x00", b"gpu-0", b"a/")


def mutate(rng: random.Random, line: bytes) -> bytes:
    start, upto = sorted((rng.randrange(len(line) + 1), rng.randrange(len(line) + 1)))
    return {
        0: lambda: line,
        1: lambda: line[:start],
        2: lambda: line[:start] + rng.choice(PIECES) + line[start:],
        3: lambda: line[:start] + line[min(upto, start + 12) :],
        4: lambda: bytes(rng.randrange(256) if rng.random() < 0.02 else byte for byte in line),
    }[rng.randrange(5)]()


def test_mutated_lines_are_read_without_an_error_and_every_line_is_accounted_for() -> None:
    rng, reader = random.Random(7), KaiLog()
    lines_of_cases = read_texts(CONSOLE) + read_texts(JSON) + read_texts(TAGS)
    events: list[Event] = []
    counted = 0
    for number in range(0, LINES, 200):
        events += reader.feed(block([mutate(rng, rng.choice(lines_of_cases)) for _ in range(200)], number=number))
        if number % 2000 == 0:
            counted += sum(reader.counts.lines.values())
            saved, reader = reader.save(), KaiLog()
            reader.restore(saved)
    events += reader.close()
    assert counted + sum(reader.counts.lines.values()) == LINES
    assert len(events) > 500
    for event in events:
        record = encode(event)
        assert not isinstance(decode(record.value, record.headers), Rejected)


def test_the_saved_state_is_bounded() -> None:
    reader = KaiLog()
    looking = "Looking for best node for task - Task: <a/p-{1}>, init requested: <GPU: 1>."
    line = f"2026-11-21T03:13:33.245Z\tINFO\tcommon/allocate.go:1\t[s{{0}}] {looking}"
    sizes = []
    for session in range(40):
        reader.feed(block([line.format(session, pod).encode() for pod in range(200)]))
        sizes.append(len(reader.save()))
    assert max(sizes[10:]) < 1.2 * max(sizes[:10])


def test_a_text_of_very_many_lines_is_cut() -> None:
    reader = KaiLog()
    head = b"2026-11-21T03:13:33.245Z\tINFO\tstatus_updater/default_status_updater.go:1\t[s1] Full fit error: "
    for _ in range(20):
        reader.feed(block([head, *([b"x" * 100_000] * 50)]))
    assert len(reader.save()) < 2_000_000


def test_a_tagged_line_that_names_two_pods_is_about_the_one_that_begins() -> None:
    line = b"[GPU_FILTER] Node <gpu-0>: pod <a/x>, Filtering GPUs for pod <a/y>, requested gpu-memory: <30000 MB>"
    (attempt,) = summarize_attempts(read([line]))
    assert str(attempt.pod) == "a/y"
