"""Device use of the pods on some nodes, as the scheduler's fit counts it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from api.index.nodes.occupancy_queries import build_placements_on_nodes_query, decode_placement
from api.index.reading.client import OpenSearch
from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.summaries.overcommit import calculate_peak
from schemas.events import PodRef
from schemas.indices import OCCUPANCY
from schemas.placements import PodPlacement


@dataclass(slots=True)
class HeldBy:
    """Pods that hold devices of one node, by uid."""

    uses: dict[str, PodUse] = field(default_factory=dict)
    pods: dict[str, PodRef] = field(default_factory=dict)


async def read_holders(index: OpenSearch, cluster: str, nodes: Sequence[str], moment: datetime) -> dict[str, HeldBy]:
    """Read the holders of devices on ``nodes`` at ``moment``, by node; without nodes that have none."""
    if not nodes:
        return {}
    answer = await index.search(OCCUPANCY.alias, build_placements_on_nodes_query(cluster, nodes, moment))
    holders: dict[str, HeldBy] = {}
    for hit in answer["hits"]["hits"]:
        placement = decode_placement(hit)
        if placement.is_on(moment) and placement.pod.uid and placement.allocations:
            held = holders.setdefault(placement.node, HeldBy())
            held.uses[placement.pod.uid] = count_use(placement)
            held.pods[placement.pod.uid] = placement.pod
    return holders


def count_use(placement: PodPlacement) -> PodUse:
    """Count the device use of a pod as the fit does."""
    uuids = dict.fromkeys(row.uuid for row in placement.allocations)
    shares = {}
    for uuid in uuids:
        amounts = calculate_peak([row for row in placement.allocations if row.uuid == uuid], uuid)
        shares[uuid] = DeviceUse(amounts.memory_mib, amounts.cores_percent, amounts.slots)
    return PodUse(placement.node, placement.pod.namespace, shares, placement.pod.name)
