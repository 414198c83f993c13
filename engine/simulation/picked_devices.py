"""Devices of the chosen node: their state before the pod, and why each was taken or not."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.fit.judge.judgement import ContainerJudgement


@dataclass(frozen=True, slots=True)
class TriedDevice:
    """A device of the chosen node, as it was judged for one container. Use is that before the pod."""

    container: str
    index: int
    uuid: str
    model: str
    verdict: str
    memory_mib: int
    """MiB that the container gets; 0 of a device that it does not."""
    cores: int
    memory_total_mib: int
    memory_used_mib: int
    cores_total: int
    cores_used: int
    slots: int
    slots_used: int

    @property
    def is_picked(self) -> bool:
        """True if the container gets the device."""
        return self.verdict == verdict_codes.VERDICTS[verdict_codes.PICKED]


def list_devices(decision: Decision) -> list[TriedDevice]:
    """List the devices of the chosen node for each container that asks for some; none without a node."""
    if decision.chosen is None:
        return []
    node = decision.node_names.index(decision.chosen)
    return [device for judgement in decision.judgements for device in _iterate_devices(decision, judgement, node)]


def _iterate_devices(decision: Decision, judgement: ContainerJudgement, node: int) -> Iterator[TriedDevice]:
    positions = np.flatnonzero(judgement.nodes == node)
    fragment = decision.get_fragment(node)
    if not len(positions) or fragment is None:
        return
    position = int(positions[0])
    request = decision.containers[judgement.container]
    grants = decision.allocation.containers[judgement.container] if decision.allocation else ()
    by_uuid = {grant.uuid: grant for grant in grants}
    for row in range(int(judgement.offsets[position]), int(judgement.offsets[position + 1])):
        kind, device = decision.kinds[int(judgement.kind[row])], int(judgement.device[row])
        uuid = fragment.uuids[device]
        grant = by_uuid.get(uuid)
        yield TriedDevice(
            container=request.name,
            index=grant.index if grant else device,
            uuid=uuid,
            model=kind.model,
            verdict=verdict_codes.VERDICTS[int(judgement.verdict[row])],
            memory_mib=grant.memory_mib if grant else 0,
            cores=grant.cores if grant else 0,
            memory_total_mib=kind.memory_mib,
            memory_used_mib=int(judgement.used_memory_mib[row]),
            cores_total=kind.cores,
            cores_used=int(judgement.used_cores[row]),
            slots=kind.slots,
            slots_used=int(judgement.used_slots[row]),
        )
