"""Entries for a spool, with what a test does not name filled in."""

from datetime import UTC, datetime, timedelta

import numpy as np

from scheduler.publish.spool.frames import Entry, EntryKind
from schemas.codec.records import EncodedRecord, encode
from schemas.events import DevicesJudged, PodRef, Request
from schemas.ids import count_microseconds, derive_attempt_id
from schemas.topics import DECISIONS
from tests.support.builders.node_states import EPOCH, REVISION

NOW = datetime(2026, 11, 21, 3, 0, 0, tzinfo=UTC)


class Clock:
    """Stands still until a test advances it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def a_verdict(name: str = "a", size: int = 10) -> Entry:
    """A record that is never given up as detail; its id is ``<name>/concluded``."""
    record = EncodedRecord(
        b"default/pod", b"v" * size, [("ce_id", f"{name}/concluded".encode()), ("ce_type", b"t")], DECISIONS.name
    )
    return Entry(EntryKind.VERDICT, record, count_microseconds(NOW))


def build_detail(pod: str = "pod1", part: int = 0, devices: int = 2, started_at: datetime = NOW) -> Entry:
    """Build an entry with the device rows of one attempt on one node."""
    event = DevicesJudged(
        cluster="default",
        attempt_id=derive_attempt_id("default", "s", pod, started_at),
        pod=PodRef(namespace="default", name=pod, uid=pod),
        scheduler="s",
        started_at=started_at,
        part=part,
        container=0,
        request=Request(container="main"),
        verdicts=["picked"],
        epoch=EPOCH,
        nodes=["node1"],
        revision=np.array([REVISION]),
        devices=np.array([devices]),
        rows=np.array([devices]),
        verdict=np.zeros(devices, np.int64),
        device=np.zeros(0, np.int64),
    )
    return Entry(EntryKind.DETAIL, encode(event, DECISIONS.name), count_microseconds(started_at), devices)
