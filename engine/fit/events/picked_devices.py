"""Devices that were taken on the chosen node, as the conclusion of an attempt names them. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np

from engine.fit.events.record_columns import INT64_MAX
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.fit.judge.judgement import ContainerJudgement
from schemas.events import PickedDevice, Request


def list_picked_devices(decision: Decision, requests: Sequence[Request]) -> list[PickedDevice]:
    """List the devices by container, in the order of the node's registration, with the numbers behind the verdict."""
    chosen = np.flatnonzero(decision.node_verdict == verdict_codes.NODE_PICKED)
    return [
        device
        for node in chosen.tolist()
        for judgement in sorted(decision.judgements, key=lambda judgement: judgement.container)
        for device in _list_container_devices(decision, judgement, requests[judgement.container], node)
    ]


def _list_container_devices(
    decision: Decision, judgement: ContainerJudgement, request: Request, node: int
) -> Iterator[PickedDevice]:
    fragment, position = decision.get_fragment(node), int(np.searchsorted(judgement.nodes, node))
    if fragment is None:
        return
    rows = range(int(judgement.offsets[position]), int(judgement.offsets[position + 1]))
    for row in (row for row in rows if judgement.verdict[row] == verdict_codes.PICKED):
        kind = decision.kinds[int(judgement.kind[row])]
        yield PickedDevice.model_construct(
            container=judgement.container,
            uuid=fragment.uuids[int(judgement.device[row])],
            model=kind.model,
            memory_mib=request.compute_memory(kind.memory_mib),
            cores_percent=request.cores_percent,
            memory_total_mib=min(kind.memory_mib, INT64_MAX),
            memory_used_mib=int(judgement.used_memory_mib[row]),
            cores_total_percent=min(kind.cores, INT64_MAX),
            cores_used_percent=int(judgement.used_cores[row]),
            slots_total=min(kind.slots, INT64_MAX),
            slots_used=int(judgement.used_slots[row]),
        )
