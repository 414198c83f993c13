"""The devices that were taken on the chosen node, as the conclusion of an attempt names them. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np

from engine.fit.events.record_columns import INT64_MAX
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import ContainerJudgement, Decision
from schemas.events import PickedDevice, Request


def picked_devices(decision: Decision, requests: Sequence[Request]) -> list[PickedDevice]:
    """By container, in the order in which the node registers them; with the numbers that the verdict was made with."""
    chosen = np.flatnonzero(decision.node_verdict == verdict_codes.NODE_PICKED)
    return [
        device
        for node in chosen.tolist()
        for judged in sorted(decision.judgements, key=lambda judgement: judgement.container)
        for device in _of_container(decision, judged, requests[judged.container], node)
    ]


def _of_container(
    decision: Decision, judged: ContainerJudgement, request: Request, node: int
) -> Iterator[PickedDevice]:
    fragment, place = decision.fragment(node), int(np.searchsorted(judged.nodes, node))
    if fragment is None:
        return
    rows = range(int(judged.offsets[place]), int(judged.offsets[place + 1]))
    for row in (row for row in rows if judged.verdict[row] == verdict_codes.PICKED):
        kind = decision.kinds[int(judged.kind[row])]
        yield PickedDevice.model_construct(
            container=judged.container,
            uuid=fragment.uuids[int(judged.device[row])],
            model=kind.model,
            memory_mib=request.memory_of(kind.memory_mib),
            cores_percent=request.cores_percent,
            memory_total_mib=min(kind.memory_mib, INT64_MAX),
            memory_used_mib=int(judged.used_memory_mib[row]),
            cores_total_percent=min(kind.cores, INT64_MAX),
            cores_used_percent=int(judged.used_cores[row]),
            slots_total=min(kind.slots, INT64_MAX),
            slots_used=int(judged.used_slots[row]),
        )
