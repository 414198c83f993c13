"""Placements that hold every device of the generated cluster, as documents of the index."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from dev.bench.cluster import iterate_objects
from engine.hami.allocation import list_allocations
from pipeline.sinks.bulk import Document, encode_source
from runtime.settings.names import DEFAULT_CLUSTER
from schemas.documents.placements import build_placement_document
from schemas.events import DeviceAllocation, PodRef
from schemas.indices import OCCUPANCY
from schemas.placements import PodPlacement

NAMESPACES: Final = 20


def iterate_placement_documents(nodes: int) -> Iterator[Document]:
    """Iterate over placements of a pod on each device of ``nodes`` nodes, which holds what the generated pods hold."""
    started_at = datetime.now(UTC) - timedelta(hours=1)
    for item in iterate_objects(nodes):
        if item["kind"] == "Pod":
            for allocation in list_allocations(item):
                placement = _build_placement(item["spec"]["nodeName"], allocation, started_at)
                json = encode_source(build_placement_document(placement, {}))
                yield Document(OCCUPANCY.name(started_at), placement.id, json, version=1)


def _build_placement(node: str, allocation: DeviceAllocation, started_at: datetime) -> PodPlacement:
    name = f"{node}-{allocation.container}"
    # By node and container: neighbours on a node belong to different teams, as where devices are shared out.
    team = (int(node.rpartition("-")[2]) + int(allocation.container[1:])) % NAMESPACES
    pod = PodRef(namespace=f"team-{team}", name=name, uid=f"uid-{name}")
    return PodPlacement(
        id=f"{pod.uid}.{node}",
        cluster=DEFAULT_CLUSTER,
        pod=pod,
        node=node,
        started_at=started_at,
        scheduler="hami-scheduler",
        phase="Running",
        allocations=[allocation],
    )
