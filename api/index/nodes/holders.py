"""What the pods on some nodes hold, as the scheduler's fit counts it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from api.index.nodes.occupancy_queries import placement_of_hit, placements_on_nodes_query
from api.index.reading.client import OpenSearch
from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.summaries.overcommit import calculate_peak
from schemas.events import PodRef
from schemas.indices import OCCUPANCY
from schemas.placements import PodPlacement


@dataclass(slots=True)
class HeldBy:
    """The pods that hold devices of one node, by uid."""

    uses: dict[str, PodUse] = field(default_factory=dict)
    pods: dict[str, PodRef] = field(default_factory=dict)


async def read_holders(index: OpenSearch, cluster: str, nodes: Sequence[str], at: datetime) -> dict[str, HeldBy]:
    """The holders on each of ``nodes`` on which pods held devices at this time."""
    if not nodes:
        return {}
    answer = await index.search(OCCUPANCY.alias, placements_on_nodes_query(cluster, nodes, at))
    found: dict[str, HeldBy] = {}
    for hit in answer["hits"]["hits"]:
        placement = placement_of_hit(hit)
        if placement.is_on(at) and placement.pod.uid and placement.allocations:
            held = found.setdefault(placement.node, HeldBy())
            held.uses[placement.pod.uid] = use_of(placement)
            held.pods[placement.pod.uid] = placement.pod
    return found


def use_of(placement: PodPlacement) -> PodUse:
    """What the pod holds, as the fit counts it."""
    uuids = dict.fromkeys(row.uuid for row in placement.allocations)
    shares = {}
    for uuid in uuids:
        amounts = calculate_peak([row for row in placement.allocations if row.uuid == uuid], uuid)
        shares[uuid] = DeviceUse(amounts.memory_mib, amounts.cores_percent, amounts.slots)
    return PodUse(placement.node, placement.pod.namespace, shares, placement.pod.name)
