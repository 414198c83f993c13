"""Readers of bytes and texts: whatever arrives, each answers in its own terms and never crashes."""

import contextlib
import json
from datetime import datetime
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.admission.admit import AdmissionRules
from engine.fit.devices.quota import Quotas
from engine.fit.judge.request.pod_annotations import WeightsError, parse_weights, read_pod_annotations
from engine.hami import allocation, registration
from engine.hami.vendors import NVIDIA
from scheduler.answering.extender_protocol import UnusableBodyError, read_bind, read_filter
from scheduler.webhook.review import answer
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.stress import count_examples

NOW = datetime(2026, 11, 21, 3, 0, 0)  # noqa: DTZ001 - a handshake's time names no zone
ABSURD = ["9" * 30, "-" + "9" * 30, "1e308", "1E-300", "-0", "0x10", "١٢", "1Ki", "5m", "7M", "NaN", "Infinity"]
PIECES = st.sampled_from([",", ":", ";", "|", "[", "]", "{", "}", '"', "=", "\0", "\ud800", *ABSURD])
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.sampled_from(ABSURD))
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SIMPLE, lambda values: st.lists(values, max_size=4) | st.dictionaries(TEXTS, values, max_size=4), max_leaves=12
)
OBSERVATIONS = {
    "filter": {"Pod": a_pod(), "Nodes": {"items": [a_node()]}, "NodeNames": ["node1"]},
    "bind": {"PodName": "pod1", "PodNamespace": "default", "PodUID": "u", "Node": "node1"},
    "review": {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "object": a_pod(), "namespace": "default", "operation": "CREATE"},
    },
}


def a_body(written: Any, path: list[int], value: Any) -> bytes:
    """`written` as JSON, with `value` where `path` leads to."""
    written = json.loads(json.dumps(written))
    parent: Any = [written]
    key: Any = 0
    for step in path:
        inner = parent[key]
        if not isinstance(inner, dict | list) or not inner:
            break
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        parent, key = inner, keys[step % len(keys)]
    parent[key] = value
    return json.dumps(written).encode(errors="surrogatepass")


def read_any(body: bytes) -> None:
    """Read every body by every reader."""
    for read in (read_filter, read_bind):
        with contextlib.suppress(UnusableBodyError):
            read(body)
    assert orjson.loads(answer(body, AdmissionRules(), Quotas()))["response"]["allowed"] in (True, False)


@given(st.binary(max_size=200))
@example(b"\xff\xfe{}")
@example(b'{"Pod": {"metadata": {"name": "\xc3\x28"}}}')
@example(b"[" * 100_000)
@example(b'{"Pod":' * 10_000)
@example(b'{"PodName": "\\ud800"}')
@settings(max_examples=count_examples(30))
def test_any_body(body: bytes) -> None:
    read_any(body)


@given(st.sampled_from(sorted(OBSERVATIONS)), st.lists(st.integers(0, 9), min_size=1, max_size=8), JSON)
@settings(max_examples=count_examples(50))
def test_any_value_anywhere_in_a_body(kind: str, path: list[int], value: Any) -> None:
    read_any(a_body(OBSERVATIONS[kind], path, value))


@given(st.sampled_from(sorted(OBSERVATIONS)), st.data())
@settings(max_examples=count_examples(30))
def test_any_byte_of_a_body_replaced(kind: str, data: st.DataObject) -> None:
    body = bytearray(json.dumps(OBSERVATIONS[kind]).encode())
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_any(bytes(body))


def test_gigantic_lists_are_read_as_any_other() -> None:
    names = [f"node{number}" for number in range(100_000)]
    assert len(read_filter(json.dumps({"Pod": a_pod(), "NodeNames": names}).encode()).node_names) == len(names)
    containers = [a_container(f"c{number}") for number in range(5_000)]
    read_any(a_body(OBSERVATIONS["review"], [2, 1, 3, 0], containers))
    held = allocation.decode_devices("GPU-0,NVIDIA,1,1:" * 100_000 + ";")
    assert len(held[0]) == 100_000
    gpus = json.dumps([{"id": f"GPU-{n}", "count": 1, "devmem": 1, "devcore": 1, "type": "T"} for n in range(20_000)])
    decoded = registration.decode_registration(gpus)
    assert isinstance(decoded, registration.Registration)
    assert len(decoded.devices) == 20_000


@given(TEXTS)
@settings(max_examples=count_examples(15))
def test_any_weights(text: str) -> None:
    with contextlib.suppress(WeightsError):
        parse_weights(text)


@given(st.dictionaries(st.sampled_from([NVIDIA.pod.use_type, NVIDIA.pod.use_uuid, NVIDIA.pod.numa_bind]), TEXTS))
@settings(max_examples=count_examples(15))
def test_any_annotation(value: dict[str, str]) -> None:
    read_pod_annotations(value, "binpack", "spread", NVIDIA)
