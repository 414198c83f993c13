"""From a log file to the index, through real processes: killed, restarted, read twice."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dev import embedded
from engine.summaries.answer import encode_schedulerlog
from engine.summaries.fold import summarize
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from schemas.codec.records import decode
from schemas.documents.attempts import read_summary
from schemas.events import (
    AttemptConcluded,
    AttemptEvent,
    AttemptSummarized,
    BindConcluded,
    DevicesJudged,
    NodeStateChanged,
)
from schemas.topics import DECISIONS, NODE_STATES
from tests.support.harness import ingest_process as reading
from tests.support.harness.forked import Forked
from tests.support.harness.ingest_process import wait_until_taken
from tests.support.harness.pipeline_process import Pipeline
from tests.support.harness.scheduler_process import read_topic
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually, until

ENDS = (AttemptConcluded, BindConcluded)
LOGS = Path(__file__).parents[2] / "conformance" / "cases" / "logs"


def start_ingest(running: Pipeline, *arguments: str) -> Forked:
    return reading.run_ingest(running, "hami-log", *arguments)


def read(running: Pipeline, *arguments: str) -> str:
    return reading.read(running, "hami-log", *arguments)


def group_attempts(text: bytes, scheduler: str) -> dict[str, list[AttemptEvent]]:
    """Group the reader's events in this process by attempt."""
    reader = HamiLog(scheduler)
    attempts: dict[str, list[AttemptEvent]] = {}
    lines = Lines(Origin("log", datetime.now(UTC)), text.splitlines())
    for event in [*reader.feed(lines), *reader.close()]:
        if isinstance(event, AttemptEvent):
            attempts.setdefault(event.attempt_id, []).append(event)
    return attempts


def fetch_indexed(running: Pipeline, scheduler: str) -> dict[str, Any]:
    return running.get_documents({"term": {"scheduler": scheduler}})


def fetch_versions(running: Pipeline, scheduler: str) -> dict[str, tuple[int, Any]]:
    return reading.get_versions(running, {"term": {"scheduler": scheduler}})


def read_verdicts_and_states(running: Pipeline, scheduler: str) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Read the states that the verdicts on the topic name, and the states on their own topic: node and revision."""
    decisions, node_states = (
        [decode(record.value, record.headers) for record in running.read_topic(topic.name)]
        for topic in (DECISIONS, NODE_STATES)
    )
    named = {
        (node, revision)
        for event in decisions
        if isinstance(event, DevicesJudged) and event.scheduler == scheduler
        for node, revision in zip(event.nodes, event.revision.tolist(), strict=True)
    }
    states = [event for event in node_states if isinstance(event, NodeStateChanged) and event.scheduler == scheduler]
    return named, {(state.node, state.revision) for state in states}


def test_every_attempt_of_a_log_is_in_the_index_as_the_reader_reads_it(running: Pipeline) -> None:
    log = LOGS / "038.log"
    output = read(running, str(log), "--scheduler", "one")
    expected = group_attempts(log.read_bytes(), "one")
    documents = until(lambda: fetch_indexed(running, "one"), lambda documents: len(documents) == len(expected))
    assert set(documents) == set(expected)
    assert "unknown" in output
    for attempt_id, events in expected.items():
        summary = read_summary(documents[attempt_id])
        assert isinstance(summary, AttemptSummarized)
        assert json.loads(encode_schedulerlog(summary)) == json.loads(encode_schedulerlog(summarize(events)))
    named, states = read_verdicts_and_states(running, "one")
    assert named
    assert named == states


def test_reading_a_log_twice_leaves_the_index_as_it_was(running: Pipeline) -> None:
    log = LOGS / "031.log"
    read(running, str(log), "--scheduler", "twice")
    wait_until_taken(running)
    before = fetch_versions(running, "twice")
    read(running, str(log), "--scheduler", "twice")
    wait_until_taken(running)
    assert len(before) > 5
    assert fetch_versions(running, "twice") == before


def test_a_reader_that_is_killed_again_and_again_loses_and_repeats_nothing(running: Pipeline, tmp_path: Path) -> None:
    text = b"".join((LOGS / f"{name}.log").read_bytes() for name in ("011", "013", "031", "038", "042"))
    lines = text.splitlines(keepends=True)
    log, checkpoint = tmp_path / "hami.log", tmp_path / "checkpoint.json"
    log.touch()
    options = (str(log), "--follow", "--checkpoint", str(checkpoint), "--scheduler", "killed")
    pieces = 4
    for piece in range(pieces):
        process = start_ingest(running, *options)
        with log.open("ab") as file:
            for line in lines[piece * len(lines) // pieces : (piece + 1) * len(lines) // pieces]:
                file.write(line)
        # Killed while it reads, but for the last time; without a checkpoint nothing shows that a file was rotated.
        assert until(checkpoint.exists, bool)
        time.sleep(1.5 + piece * 0.4)
        if piece < pieces - 1:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
            if piece == 1:
                log.rename(tmp_path / "hami.log.1")
                log.touch()
    try:
        attempts = group_attempts(text, "killed")
        expected = {name: events for name, events in attempts.items() if any(isinstance(e, ENDS) for e in events)}
        documents = until(lambda: fetch_indexed(running, "killed"), lambda documents: set(documents) >= set(expected))
        assert set(documents) == set(expected)
        wait_until_taken(running)
        documents = fetch_indexed(running, "killed")
        assert set(documents) == set(expected)
        for attempt_id, events in expected.items():
            summary = read_summary(documents[attempt_id])
            assert isinstance(summary, AttemptSummarized)
            assert encode_schedulerlog(summary) == encode_schedulerlog(summarize(events))
        named, states = read_verdicts_and_states(running, "killed")
        assert named
        assert named <= states
    finally:
        process.kill()
        process.communicate(timeout=120)


def test_an_interrupted_reader_says_so_and_continues_where_kafka_stood(running: Pipeline, tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "hami.log", tmp_path / "checkpoint.json"
    noise = (LOGS / "011.log").read_bytes()
    log.write_bytes(noise * (40_000_000 // len(noise)) + (LOGS / "038.log").read_bytes())
    options = (str(log), "--checkpoint", str(checkpoint), "--scheduler", "interrupted")
    process = start_ingest(running, *options)
    assert until(checkpoint.exists, bool)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "interrupted before the end of the log; start again to continue after what Kafka took" in output
    assert "lines: " in output
    reached = json.loads(checkpoint.read_bytes())
    read(running, *options)
    assert json.loads(checkpoint.read_bytes()) != reached
    expected = group_attempts((LOGS / "038.log").read_bytes(), "interrupted")
    documents = until(lambda: fetch_indexed(running, "interrupted"), lambda documents: set(documents) >= set(expected))
    assert set(documents) >= set(expected)


def list_ended(text: bytes) -> set[str]:
    """List the attempts whose end is in the log: while it is followed, the others wait for more."""
    attempts = group_attempts(text, "hami-scheduler").items()
    return {name for name, events in attempts if any(isinstance(event, ENDS) for event in events)}


def list_attempts(servers: embedded.Backends) -> set[str]:
    records = asyncio.run(read_topic(servers.bootstrap_servers, "schedulerlog.decisions"))
    events = [decode(record.value, record.headers) for record in records]
    return {event.attempt_id for event in events if isinstance(event, ENDS)}


def test_a_kafka_that_takes_nothing_is_waited_for_with_a_warning(
    own_backends: Callable[..., embedded.Backends], tmp_path: Path
) -> None:
    servers = own_backends(only="kafka")
    log = tmp_path / "hami.log"
    log.write_bytes((LOGS / "038.log").read_bytes())
    asyncio.run(provision_all(servers.bootstrap_servers))
    command = ["ingest", "hami-log", str(log), "--follow", "--kafka", servers.bootstrap_servers]
    with (output := tmp_path / "output.log").open("wb") as file:
        process = Forked(*command, stderr=file)
    try:
        assert until(lambda: list_attempts(servers), bool)
        servers.kafka[0].kill()
        with log.open("ab") as file:
            file.write((LOGS / "031.log").read_bytes())
        eventually(lambda: "waiting for it, 115 s at most" in output.read_text(), output.read_text)
        servers.kafka[0].start()
        expected = list_ended(log.read_bytes())
        assert until(lambda: list_attempts(servers), lambda documents: documents >= expected) >= expected
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def test_no_kafka_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ingest", "hami-log", str(LOGS / "011.log"), "--kafka", "127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "no Kafka at 127.0.0.1:9" in done.stderr
