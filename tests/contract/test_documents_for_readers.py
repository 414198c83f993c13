"""Pages about events are true: examples are golden records, tables the topics, and shell lines run."""

import json
import random
import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.codec.records import decode, encode
from schemas.events import EVENTS, Event
from schemas.generate import ROOT
from schemas.topics import DEAD_LETTER_HEADERS, TOPICS, Topic

GOLDEN = Path(__file__).parent / "golden"
PAGE = (ROOT / "docs/events.md").read_text(encoding="utf-8")
TYPES_PAGE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("event-types*.md")))
EXAMPLES = re.findall(r"<!-- golden: (\S+) -->\n```json\n(.*?)```", TYPES_PAGE, re.DOTALL)
KCAT_LINES = re.findall(r"```sh\n(?:for [^;]*; do )?kcat (.*?) \| jq (-\w+) '(.*?)'\n```", PAGE, re.DOTALL)
(CONSUMER,) = re.findall(r"```python\n(import json\n.*?)```", PAGE, re.DOTALL)


def test_every_type_has_an_example_and_every_example_is_a_golden_record() -> None:
    assert {name.partition("/")[0] for name, _ in EXAMPLES} == {event.TYPE for event in EVENTS}
    for name, text in EXAMPLES:
        assert text == (GOLDEN / f"{name}.json").read_text(encoding="utf-8"), name
    assert TYPES_PAGE.count("```json") == len(EXAMPLES)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_the_table_of_topics_is_that_of_the_contract(topic: Topic) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{topic.name}` |"))
    assert row.endswith(f"| {topic.partitions} | {topic.retention // timedelta(days=1)} days |")
    words = [" ".join(event.TYPE.split(".")[2:-1]) for event in topic.events]
    assert all(word in row for word in words)


def test_the_headers_are_those_of_a_record() -> None:
    headers = [("ce_type", EXAMPLES[0][0].partition("/")[0].encode())]
    event = decode(EXAMPLES[0][1].encode(), headers)
    assert isinstance(event, Event)
    for name, _ in encode(event).headers:
        assert f"| `{name}` |" in PAGE
    assert all(f"`{name}`" in PAGE for name in DEAD_LETTER_HEADERS)


def write_payload(name: str) -> str:
    """Write the value as producers do: on one line."""
    return json.dumps(json.loads((GOLDEN / f"io.schedulerlog.{name}.json").read_bytes()))


def write_envelope(name: str) -> str:
    """Write what ``kcat -J`` prints."""
    headers = json.loads((GOLDEN / f"io.schedulerlog.{name}.headers.json").read_bytes())
    key = headers.pop("key")
    flat = [text for pair in headers.items() for text in pair]
    return json.dumps({"topic": "schedulerlog.decisions", "headers": flat, "key": key, "payload": write_payload(name)})


OTHERS = ["nodes.judged.v1/001", "attempt.concluded.v1/001", "bind.concluded.v1/002", "pod.observed.v1/001"]
DECISIONS = [write_payload(name) for name in ["devices.judged.v1/004", *OTHERS]]
STATES = [write_payload(f"node.state.changed.v1/{number}") for number in ("001", "008", "009")]
ATTEMPTS = [write_payload(f"attempt.summarized.v1/{number}") for number in ("001", "002", "003")]
RETRY = write_payload("attempt.repeated.v1/001")
ENVELOPES = [write_envelope(name) for name in ["bind.concluded.v1/001", *OTHERS]]

PRINTED = [
    (
        [*STATES, *DECISIONS],
        [
            "default/gpu-pod-default\tnode1\tGPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448\tCardInsufficientCore\t40960",
            "default/gpu-pod-default\tnode1\tGPU-05ba43a8-1eb5-4645-8bdd-7fab4276ed87\tCardTimeSlicingExhausted\t61440",
            "default/gpu-pod-default\tnode2\tGPU-41ee1864-ebdc-4846-a304-f49ca3105f9d\tnot reached\t81920",
        ],
    ),
    (
        # An earlier version that was pending, a retry that names its reasons, and an attempt that is still pending.
        [
            ATTEMPTS[0],
            ATTEMPTS[0].replace('"failed"', '"pending"').replace("1776824143", "1776824142"),
            RETRY,
            ATTEMPTS[2],
        ],
        [
            "1\tCardInsufficientCore",
            "2\tCardInsufficientMemory",
            "1\tCardUuidMismatch",
            "1\tExclusiveDeviceAllocateConflict",
            "1\tNumaNotFit",
        ],
    ),
    (
        ATTEMPTS[:2],
        [
            (
                "llm/deepseek-5996b8569d-kgwgx\tnode1\trefused\t0\t1/8 ExclusiveDeviceAllocateConflict, "
                "2/8 CardInsufficientCore, 2/8 NumaNotFit, 3/8 CardInsufficientMemory"
            ),
            (
                "llm/deepseek-5996b8569d-kgwgx\tnode2\trefused\t0\t1/8 ExclusiveDeviceAllocateConflict, "
                "3/8 CardInsufficientMemory, 4/8 CardUuidMismatch"
            ),
            "llm/deepseek-5996b8569d-kgwgx\tnode3\tfits\t0.65\t",
            "llm/deepseek-5996b8569d-kgwgx\tnode4\tfits\t0.26\t",
            "llm/deepseek-5996b8569d-kgwgx\tnode5\tpicked\t0.85\t",
            "train/llama-70b-worker-3\tgpu-1700.example\trefused\t0\t8/8 ExclusiveDeviceAllocateConflict",
            "train/llama-70b-worker-3\tgpu-1701.example\tunregistered\t0\tnode unregistered",
        ],
    ),
    (
        [ATTEMPTS[0], ATTEMPTS[1].replace('"part": 1', '"part": 0'), ATTEMPTS[2]],
        [
            (
                '{"started_at":"2026-06-30T23:59:59.999999Z","pod":"train/llama-70b-worker-3",'
                '"codes":["ExclusiveDeviceAllocateConflict","node unregistered"]}'
            )
        ],
    ),
    (
        ENVELOPES,
        [
            (
                '{"pod":"deepseek-5996b8569d-kgwgx","node":"node5",'
                '"error":"node node5 has been locked within 5m0s: node lock contention"}'
            )
        ],
    ),
]


def test_every_shell_line_of_the_page_is_tried() -> None:
    assert len(KCAT_LINES) == PAGE.count("```sh") == len(PRINTED)


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_a_shell_line_of_the_page_prints_what_it_promises(number: int) -> None:
    _, option, program = KCAT_LINES[number]
    lines, printed = PRINTED[number]
    ran = subprocess.run(["jq", option, program], input="\n".join(lines), capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == printed


def read_record(name: str) -> tuple[list[tuple[str, bytes]], bytes]:
    """Read headers and value of a golden record."""
    headers = json.loads((GOLDEN / f"io.schedulerlog.{name}.headers.json").read_bytes())
    return [(name, value.encode()) for name, value in headers.items()], write_payload(name).encode()


VERDICTS_AND_STATES = [
    "devices.judged.v1/003", "devices.judged.v1/004", "devices.judged.v1/005", "devices.judged.v1/006",
    *(f"node.state.changed.v1/{number}" for number in ("001", "003", "007", "008", "009", "010")),
    "attempt.concluded.v1/001", "nodes.judged.v1/001",
]  # fmt: skip
LINES = [
    " GPU-62b7408e-edb2-41d1-bc91-f46165c61130 CardInsufficientMemory, 41645 of 45912 MiB",
    "mig-1 GPU-a picked, 0 of 40960 MiB",
    "mig-1 GPU-a picked, 0 of 40960 MiB",
    "mig-1 GPU-b CardFromTheFuture, 36864 of 40960 MiB",
    "node1 GPU-05ba43a8-1eb5-4645-8bdd-7fab4276ed87 CardTimeSlicingExhausted, 20480 of 81920 MiB",
    "node1 GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448 CardInsufficientCore, 40960 of 81920 MiB",
    "node2 GPU-41ee1864-ebdc-4846-a304-f49ca3105f9d not reached, 0 of 81920 MiB",
]


@pytest.mark.parametrize("seed", range(20))
def test_the_consumer_of_the_page_finds_every_device_in_whatever_order_the_records_come(seed: int) -> None:
    consumer: dict[str, Any] = {}
    exec(CONSUMER, consumer)  # noqa: S102 - our own page
    records = [read_record(name) for name in VERDICTS_AND_STATES]
    random.Random(seed).shuffle(records)
    lines = [line for headers, value in records for line in consumer["lines_of"](headers, value)]
    assert sorted(line.partition(" ")[2] for line in lines) == LINES
    assert consumer["waiting"] == {}


def test_the_consumer_of_the_page_is_short() -> None:
    lines_of = CONSUMER.partition("def lines_of")[2].partition("def device_lines")[0]
    assert len(lines_of.strip().splitlines()) <= 20
