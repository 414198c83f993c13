"""Shipped lines give the events of the log itself; records are acknowledged when nothing needs them any more."""

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.raw_logs.agent import RawLogs
from ingest.readers.raw_logs.container_readers import IDLE_SECONDS
from ingest.readers.raw_logs.shippers import ShippedLog, parse_record
from ingest.readers.registry import find_source
from ingest.reading.trusted_containers import ContainerName, TrustedContainers, parse_container_patterns
from runtime.kafka.record import Record
from schemas.codec.records import encode
from schemas.events import Event
from schemas.topics import RAW_LOGS
from tests.support.builders.kai_lines import CONSOLE, JSON, TAGS, read, read_texts
from tests.support.builders.shipped_lines import FORMS, NAMES, STARTED, build_otel_resource, record

HAMI = b'I1121 03:06:23.217054   32118 scheduler.go:1068] "Starting schedule filter process" pod="a" namespace="b"'

KAI = TrustedContainers(["kai/*/*", "other/*/*"])


@pytest.mark.parametrize("form", FORMS)
def test_each_shippers_json_has_the_container_and_the_time_of_a_line(form: str) -> None:
    (line,) = parse_record(record(form, "hello")) or []
    assert (line.container, line.text, line.time) == (ShippedLog(*NAMES), b"hello", STARTED)
    assert (line.labels, line.is_partial) == ((("app", "x"),), False)


def test_a_tag_that_is_no_text_is_read_as_none() -> None:
    shipped = json.loads(record("fluent-bit", "hello")) | {"_p": ["P"]}
    (line,) = parse_record(json.dumps(shipped).encode()) or []
    assert (line.text, line.is_partial) == (b"hello", False)


OTEL_CLUSTER = {"key": "k8s.cluster.name", "value": {"stringValue": "Prod_East"}}


def make_record_of_cluster(form: str) -> bytes:
    shipped = json.loads(record(form, "hello"))
    if form == "otel":
        shipped["resourceLogs"][0]["resource"]["attributes"].append(OTEL_CLUSTER)
    else:
        shipped["cluster_name"] = "Prod_East"
    return json.dumps(shipped).encode()


@pytest.mark.parametrize("form", FORMS)
def test_a_shipper_may_name_the_cluster(form: str) -> None:
    (line,) = parse_record(make_record_of_cluster(form)) or []
    assert line.container == ShippedLog(*NAMES, "prod-east")


async def test_logs_of_equal_pods_in_two_clusters_are_two_logs() -> None:
    kafka, now = Kafka(), 0.0
    east = [json.dumps(json.loads(value) | {"cluster_name": "east"}).encode() for value in make_values("vector")]
    both = [value for pair in zip(east, make_values("vector"), strict=True) for value in pair]
    raw_logs = RawLogs(kafka, lambda: now, trusted=KAI, cluster="west")
    await raw_logs.read(kafka.ship(both))
    now = IDLE_SECONDS + 1
    await raw_logs.settle()
    ids = {name: {event.id for event in kafka.sent if event.cluster == name} for name in ("east", "west")}
    assert len(ids["east"]) == len(ids["west"]) > 0
    assert not ids["east"] & ids["west"]


def test_one_otel_record_holds_many_lines_of_many_containers() -> None:
    other = ("kai", "other", "c")
    logs = {
        "resourceLogs": [build_otel_resource(["a", "b"], STARTED, NAMES), build_otel_resource(["c"], STARTED, other)]
    }
    lines = parse_record(json.dumps(logs).encode()) or []
    assert [(line.container.pod, line.text) for line in lines] == [(NAMES[1], b"a"), (NAMES[1], b"b"), ("other", b"c")]


@pytest.mark.parametrize(
    "value", [b"", b"hello", b"3", b"null", b"[3]", b"{}", b'{"resourceLogs": [3]}', b'{"log": 3}']
)
def test_a_value_that_is_not_a_shippers_json_is_refused(value: bytes) -> None:
    assert parse_record(value) is None


KEYS = (
    "log", "message", "time", "kubernetes", "resourceLogs", "resource", "attributes", "scopeLogs", "logRecords", "body",
    "stringValue", "timeUnixNano", "key", "value", "pod_name",
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text()
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner))


@given(ANY_JSON)
def test_any_json_is_read_without_an_error(value: object) -> None:
    parse_record(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("line", "name"),
    [(HAMI, "hami-log"), (read_texts(CONSOLE)[0], "kai-log"), (read_texts(JSON)[0], "kai-log"),
     (read_texts(TAGS)[0], "kai-log"),
     (b"hello", None), (b'{"level":"info"}', None), (b"", None)],
)  # fmt: skip
def test_a_line_shows_the_source_of_its_log(line: bytes, name: str | None) -> None:
    source = find_source(line)
    assert (source and source.name) == name


class Kafka:
    """Keeps what was sent, and which offsets were acknowledged before it."""

    def __init__(self) -> None:
        self.sent: list[Event] = []
        self.acknowledged: list[int] = []

    async def send(self, events: Sequence[Event]) -> None:
        self.sent += events

    async def ship(self, values: Sequence[bytes], first: int = 0) -> AsyncIterator[Record]:
        for offset, value in enumerate(values[first:], start=first):
            acknowledge = partial(self.acknowledged.append, offset)
            yield Record(RAW_LOGS.name, 0, offset, None, value, (), 0, acknowledge)


def make_values(form: str) -> list[bytes]:
    return [record(form, line.decode()) for line in read_texts(CONSOLE)]


@pytest.mark.parametrize("form", FORMS)
async def test_a_shipped_log_gives_the_events_of_the_log_itself(form: str) -> None:
    kafka, now = Kafka(), 0.0
    raw_logs = RawLogs(kafka, lambda: now, trusted=KAI)
    await raw_logs.read(kafka.ship(make_values(form)))
    now = IDLE_SECONDS + 1
    await raw_logs.settle()
    assert [encode(event) for event in kafka.sent] == [encode(event) for event in read(read_texts(CONSOLE))]
    assert kafka.acknowledged == list(range(len(read_texts(CONSOLE))))
    assert raw_logs.unacknowledged == 0


async def test_what_is_open_is_not_acknowledged_and_read_again_after_a_crash() -> None:
    everything = make_values("vector")
    expected = {encode(event).value for event in read(read_texts(CONSOLE))}
    for crash in range(5, len(everything), 37):
        before, after, now = Kafka(), Kafka(), [0.0]
        await RawLogs(before, lambda: 0.0, trusted=KAI).read(before.ship(everything[:crash]))
        again = before.acknowledged[-1] + 1 if before.acknowledged else 0
        raw_logs = RawLogs(after, now.pop, trusted=KAI)
        now.extend([0.0] * len(everything))
        await raw_logs.read(after.ship(everything, again))
        now[:] = [IDLE_SECONDS + 1]
        await raw_logs.settle()
        assert {encode(event).value for event in (*before.sent, *after.sent)} == expected


async def test_a_line_that_the_runtime_divided_is_one_line() -> None:
    kafka = Kafka()
    line = read_texts(CONSOLE)[0].decode()
    parts = [record("vector", line[:100]), record("vector", line[100:])]
    cut = [json.dumps(json.loads(part) | {"_p": tag}).encode() for part, tag in zip(parts, "PF", strict=True)]
    raw_logs = RawLogs(kafka, lambda: 0.0, trusted=KAI)
    await raw_logs.read(kafka.ship(cut))
    assert raw_logs.count_lines()["kai-log", "event"] == sum(raw_logs.count_lines().values()) == 1


async def test_other_containers_and_strange_records_are_counted_and_skipped() -> None:
    kafka = Kafka()
    raw_logs = RawLogs(kafka, lambda: 0.0, trusted=KAI)
    await raw_logs.read(kafka.ship([record("vector", "GET / 200"), b"\xff", record("otel", "hello")]))
    assert (raw_logs.count_lines(), raw_logs.strange) == ({("", "other"): 2}, 1)
    assert kafka.acknowledged == [0, 1, 2]


async def test_revoked_partitions_acknowledge_nothing_more() -> None:
    kafka = Kafka()
    raw_logs = RawLogs(kafka, lambda: 0.0, trusted=KAI)
    await raw_logs.read(kafka.ship(make_values("vector")[:30]))
    raw_logs.forget()
    acknowledged_before = list(kafka.acknowledged)
    await raw_logs.settle()
    assert kafka.acknowledged == acknowledged_before


async def test_h8_lines_of_a_container_that_is_not_named_become_no_events() -> None:
    kafka, now = Kafka(), 0.0
    raw_logs = RawLogs(kafka, lambda: now, trusted=TrustedContainers(["kai/kai-scheduler-*/scheduler"]))
    forged = [
        record("vector", line.decode(), names=names)
        for line in read_texts(CONSOLE)
        for names in (("tenant-x", "innocent", "main"), ("kai", "kai-scheduler-7d9", "sidecar"), ("", "", ""))
    ]
    await raw_logs.read(kafka.ship(forged))
    now = IDLE_SECONDS + 1
    await raw_logs.settle()
    assert kafka.sent == []
    assert raw_logs.count_lines() == {("", "untrusted"): len(forged)}
    assert kafka.acknowledged == list(range(len(forged)))


def test_h8_a_container_is_trusted_when_all_parts_of_a_pattern_are_its_names() -> None:
    trusted = TrustedContainers(parse_container_patterns("kube-system/hami-scheduler-*/*, kai-?/a/b"))
    assert trusted.trusts(ContainerName("kube-system", "hami-scheduler-7d9", "vgpu-scheduler-extender"))
    assert trusted.trusts(ContainerName("kai-2", "a", "b"))
    assert not trusted.trusts(ContainerName("tenant", "hami-scheduler-7d9", "x"))
    assert not trusted.trusts(ContainerName("kube-system", "x/hami-scheduler-7d9", "x"))
    assert not trusted.trusts(ContainerName("kai-2", "a", "B"))


@pytest.mark.parametrize("text", ["", "kube-system", "a/b", "a/b/c/d", "a//c"])
def test_h8_a_pattern_without_three_parts_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"kube-system/hami-scheduler-|names no container"):
        parse_container_patterns(text)
