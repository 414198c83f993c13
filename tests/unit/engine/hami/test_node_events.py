"""A node that offers devices: the scheduler and `ingest kube-events` report the same `node.registered` event."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.hami.annotations import REGISTER
from engine.hami.node_events import to_node_registered
from engine.hami.registration import Registration, decode_registration
from ingest.readers.kube import KubeEvents
from scheduler.cluster.claims import Claims
from scheduler.publish.observer import Observer
from schemas.codec.records import decode, encode
from schemas.events import Event, NodeRegistered

NOW = datetime(2026, 11, 21, 3, 0, 0, tzinfo=UTC)
VENDORS = device_config.read_shipped()

A100 = {"id": "GPU-a", "index": 1, "count": 10, "devmem": 40960, "devcore": 100, "type": "NVIDIA A100", "numa": 1}
USUAL = json.dumps([A100 | {"mode": "mig", "health": True}, {"id": "GPU-b", "type": "NVIDIA A100"}])


class Collector:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, events: Iterable[Event]) -> None:
        self.events += events


def a_node(annotations: Mapping[str, str], capacity: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "node1",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-21T02:00:00Z",
            "annotations": {"hami.io/node-handshake": "Requesting_2026-11-21 02:59:59", **annotations},
        },
        "status": {"allocatable": {"nvidia.com/gpu": "10"}, "capacity": capacity or {}},
    }


def observe_as_scheduler(node: dict[str, Any]) -> NodeRegistered:
    collector = Collector()
    observer = Observer(Identity("default", "hami"), ClusterColumns(VENDORS), Claims(), collector, lambda: NOW)  # type: ignore[arg-type]
    observer.on_node(node)
    (event,) = (event for event in collector.events if isinstance(event, NodeRegistered))
    return event


def observe_as_ingest(node: dict[str, Any]) -> NodeRegistered:
    (event,) = (event for event in KubeEvents().read_object("node", node, 0.0) if isinstance(event, NodeRegistered))
    return event


def select_fields(event: NodeRegistered) -> dict[str, Any]:
    """Select all fields but who observed the node, and when."""
    value = json.loads(encode(event).value)
    return {name: value[name] for name in TWO_DEVICES if name in value}


def build_registration(**columns: list[Any]) -> dict[str, Any]:
    return {
        "node": "node1",
        "handshake": "Requesting_2026-11-21 02:59:59",
        "registered": True,
        "cause": "",
        **columns,
    }


TWO_DEVICES = build_registration(
    uuid=["GPU-a", "GPU-b"],
    model=["NVIDIA A100", "NVIDIA A100"],
    mode=["mig", ""],
    index=[1, 0],
    memory_mib=[40960, 0],
    cores_percent=[100, 0],
    slots=[10, 0],
    numa=[1, 0],
    healthy=[True, False],
)
ONE_DEVICE = {key: value[:1] if isinstance(value, list) else value for key, value in TWO_DEVICES.items()}
NO_DEVICE = {key: [] if isinstance(value, list) else value for key, value in TWO_DEVICES.items()}


def build_refusal(cause: str) -> dict[str, Any]:
    return NO_DEVICE | {"registered": False, "cause": f"annotation hami.io/node-nvidia-register, device 0, {cause}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(USUAL, TWO_DEVICES, id="JSON"),
        pytest.param("GPU-a,10,40960,100,NVIDIA A100,1,true,1,mig:", ONE_DEVICE, id="nine fields"),
        pytest.param(
            "GPU-a,10,40960,100,NVIDIA A100,1,true:",
            ONE_DEVICE | {"index": [0], "mode": ["hami-core"]},
            id="seven fields, with HAMi's default mode",
        ),
        pytest.param(
            json.dumps([A100 | {"health": True}]), ONE_DEVICE | {"mode": [""]}, id="JSON without a mode has none"
        ),
        pytest.param(
            json.dumps([A100 | {"health": "true"}]),
            build_refusal("field health: is a string, write true or false"),
            id="health as a string",
        ),
        pytest.param(
            json.dumps([A100 | {"devmem": 2**40}]),
            build_refusal("field devmem: is 1099511627776, write a number from -2147483648 to 2147483647"),
            id="memory of more than 32 bits",
        ),
    ],
)
def test_both_sources_report_the_same_registration(text: str, expected: dict[str, Any]) -> None:
    node = a_node({REGISTER: text})
    assert select_fields(observe_as_scheduler(node)) == expected
    assert select_fields(observe_as_ingest(node)) == expected


@pytest.mark.parametrize(
    ("annotations", "capacity", "uuids"),
    [
        ({"hami.io/node-dcu-register": "DCU-0,4,16384,60,DCU-K100,0,true:"}, {}, ["DCU-0"]),
        ({"hami.io/node-register-Ascend910B3": '[{"id":"A-0","count":4,"health":true}]'}, {}, ["A-0"]),
        ({"hami.io/node-MR-V100-register": "I-0,4,128,100,MR-V100,0,true:"}, {}, ["I-0"]),
        ({"metax-tech.com/node-gpu-devices": '[{"uuid":"M-0","totalDevCount":4}]'}, {}, ["M-0"]),
        ({}, {"cambricon.com/mlu.smlu.vcore": "100"}, ["node1-cambricon-mlu-0"]),
        ({REGISTER: USUAL, "hami.io/node-dcu-register": "D,1,2,3,T,0,true:"}, {}, ["GPU-a", "GPU-b", "D"]),
        ({REGISTER: "[", "hami.io/node-dcu-register": "D,1,2,3,T,0,true:"}, {}, ["D"]),
        ({REGISTER: USUAL, "hami.io/node-dcu-register": "D"}, {}, ["GPU-a", "GPU-b"]),
    ],
)
def test_both_sources_report_the_same_devices_of_every_vendor(
    annotations: dict[str, str], capacity: dict[str, str], uuids: list[str]
) -> None:
    node = a_node(annotations, capacity)
    assert select_fields(observe_as_scheduler(node)) == select_fields(observe_as_ingest(node))
    assert observe_as_ingest(node).uuid == uuids


def test_both_sources_report_the_same_cordoned_devices() -> None:
    node = a_node({REGISTER: USUAL, "hami.io/device-cordon": "GPU-b,GPU-elsewhere"})
    assert observe_as_scheduler(node).cordoned == observe_as_ingest(node).cordoned == ["GPU-b"]


def test_a_column_takes_the_largest_index_that_fits() -> None:
    registration = decode_registration('[{"id":"GPU-a"},{"id":"GPU-b","index":18446744073709551615}]')
    assert isinstance(registration, Registration)
    record = encode(to_node_registered("default", "node1", NOW, registration))
    event = decode(record.value, record.headers)
    assert isinstance(event, NodeRegistered)
    assert event.index.tolist() == [0, 2**63 - 1]
