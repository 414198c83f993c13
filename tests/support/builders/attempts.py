"""Whole attempts for tests: a test says what became of each device, the records are made from that."""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.events import (
    NOT_REASONS,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    DevicesJudged,
    NodesJudged,
    PickedDevice,
    PodRef,
    Refusal,
    Request,
)
from tests.support.builders.node_states import (
    A100,
    EPOCH,
    REVISION,
    USED_CORES_PERCENT,
    USED_MEMORY_MIB,
    USED_SLOTS,
    write_uuid,
)

STARTED = datetime(2026, 11, 21, 3, 6, 23, 217054, tzinfo=UTC)
ENDED = STARTED + timedelta(milliseconds=13)

Devices = Mapping[str, Sequence[Sequence[str]]]
"""Per node, per container: the verdict of every device."""


def build_common(name: str = "trainer", namespace: str = "ml") -> dict[str, Any]:
    """Build the fields that all events of the attempt of one pod have in common."""
    pod = PodRef(namespace=namespace, name=name, uid=f"uid-{name}")
    attempt_id = uuid.uuid5(uuid.NAMESPACE_URL, str(pod)).hex
    return {
        "cluster": "default",
        "attempt_id": attempt_id,
        "pod": pod,
        "scheduler": "hami-scheduler",
        "started_at": STARTED,
    }


def a_request(container: str = "worker", count: int = 2) -> Request:
    return Request(container=container, vendor="NVIDIA", count=count, memory_mib=20480, cores_percent=20)


def fits(verdicts: Sequence[str]) -> bool:
    return "picked" in verdicts


def an_attempt(
    devices: Devices,
    *,
    chosen: str | None = None,
    unregistered: Sequence[str] = (),
    policy: str = "binpack",
    scores: Mapping[str, float] | None = None,
    nodes_a_record: int = 3,
    error: str = "",
    **fields: Any,
) -> list[AttemptEvent]:
    """The records of an attempt in the order in which a scheduler writes them; ``states_of`` makes their states.

    A node fits when every container has a picked device there; else the first container without one refuses it.
    """
    common = build_common() | fields
    names = [*devices, *unregistered]
    containers = max((len(device) for device in devices.values()), default=1)
    records = [
        *_build_device_records(common, devices, containers, nodes_a_record),
        *_build_node_records(common, devices, names, unregistered, chosen, scores or {}, nodes_a_record, containers),
    ]
    conclusion = AttemptConcluded(
        **common,
        ended_at=ENDED,
        requests=[a_request(f"c{index}") for index in range(containers)],
        node_policy=policy,
        offered_nodes=len(names),
        judged_nodes=len(names),
        judged_devices=sum(len(record.verdict) for record in records if isinstance(record, DevicesJudged)),
        device_records=sum(isinstance(record, DevicesJudged) for record in records),
        node_records=sum(isinstance(record, NodesJudged) for record in records),
        chosen=chosen,
        picked=_list_picked(chosen, devices.get(chosen or "", ())),
        error=error,
    )
    return [*records, conclusion]


def _list_picked(chosen: str | None, containers: Sequence[Sequence[str]]) -> list[PickedDevice]:
    return [
        a_picked_device(write_uuid(chosen or "", device), container)
        for container, verdicts in enumerate(containers)
        for device, word in enumerate(verdicts)
        if word == "picked"
    ]


def a_picked_device(uuid: str, container: int = 0, **fields: Any) -> PickedDevice:
    """Taken for ``a_request``, of a device as ``a_node_state`` describes it."""
    plain = {
        "model": A100.model,
        "memory_mib": 20480,
        "cores_percent": 20,
        "memory_total_mib": A100.memory_mib,
        "memory_used_mib": USED_MEMORY_MIB,
        "cores_total_percent": A100.cores_percent,
        "cores_used_percent": USED_CORES_PERCENT,
        "slots_total": A100.slots,
        "slots_used": USED_SLOTS,
    }
    return PickedDevice.model_validate({"container": container, "uuid": uuid} | plain | fields)


def find_refusing(containers: Sequence[Sequence[str]]) -> int:
    """Return the index of the first container that finds no device; -1 for none."""
    return next((index for index, verdicts in enumerate(containers) if not fits(verdicts)), -1)


def count_reasons(verdicts: Sequence[str]) -> Refusal:
    return Refusal(counts=Counter(word for word in verdicts if word not in NOT_REASONS), devices=len(verdicts))


def _split(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])


def _build_device_records(common: dict[str, Any], devices: Devices, containers: int, size: int) -> list[DevicesJudged]:
    judged: list[tuple[int, list[str]]] = []
    for container in range(containers):
        # A container is looked at where those before it passed.
        reached = [name for name in devices if container in range(_count_reached(devices[name]))]
        judged += [(container, run) for run in _split(reached, size)]
    return [
        a_device_record(common, part, container, {name: devices[name][container] for name in run})
        for part, (container, run) in enumerate(judged)
    ]


def _count_reached(containers: Sequence[Sequence[str]]) -> int:
    refusing = find_refusing(containers)
    return len(containers) if refusing < 0 else refusing + 1


def a_device_record(
    common: dict[str, Any], part: int, container: int, verdicts: Mapping[str, Sequence[str]]
) -> DevicesJudged:
    words = sorted({word for verdict in verdicts.values() for word in verdict})
    rows = [word for verdict in verdicts.values() for word in verdict]
    return DevicesJudged(
        **common,
        part=part,
        container=container,
        request=a_request(f"c{container}"),
        verdicts=words,
        epoch=EPOCH,
        models={A100.model: len(rows)} if rows else {},
        nodes=list(verdicts),
        revision=[REVISION] * len(verdicts),
        devices=[len(verdict) for verdict in verdicts.values()],
        rows=[len(verdict) for verdict in verdicts.values()],
        verdict=[words.index(word) for word in rows],
    )


def _build_node_records(
    common: dict[str, Any],
    devices: Devices,
    names: Sequence[str],
    unregistered: Sequence[str],
    chosen: str | None,
    scores: Mapping[str, float],
    size: int,
    containers: int,
) -> Iterator[NodesJudged]:
    words = ["refused", "fits", "picked", "unregistered"]
    for part, run in enumerate(_split(names, size)):
        refusing = [-1 if name in unregistered else find_refusing(devices[name]) for name in run]
        refusals = [
            Refusal(bare="node unregistered")
            if name in unregistered
            else (count_reasons(devices[name][index]) if index >= 0 else None)
            for name, index in zip(run, refusing, strict=True)
        ]
        table = [refusal for refusal in refusals if refusal]
        yield NodesJudged(
            **common,
            part=part,
            containers=[f"c{index}" for index in range(containers)],
            verdicts=words,
            refusals=table,
            nodes=run,
            verdict=[
                3 if name in unregistered else 0 if index >= 0 else 2 if name == chosen else 1
                for name, index in zip(run, refusing, strict=True)
            ],
            score=[scores.get(name, 0.0) for name in run],
            refused_by=refusing,
            refusal=[table.index(refusal) if refusal else -1 for refusal in refusals],
        )


def a_bind(*, bound: bool = True, node: str = "node1", after_ms: int = 20, **fields: Any) -> BindConcluded:
    ended = STARTED + timedelta(milliseconds=after_ms)
    plain = {"node": node, "bound": bound, "error": "" if bound else "no", "bind_started_at": ENDED, "ended_at": ended}
    return BindConcluded(**(build_common() | plain | fields))
