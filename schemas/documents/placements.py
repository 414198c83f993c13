"""The documents of the occupancy index: one for each placement of a pod on a node."""

from typing import Any

from schemas.codec.records import Rejected, read, rfc3339
from schemas.placements import PodPlacement


def placement_document(placement: PodPlacement, known: dict[str, Any]) -> dict[str, Any]:
    """The document of a placement; its id is the placement's id. ``known``: the facts that it was derived from."""
    # Several containers may share a device; in their order, so that the document is the same whenever it is written.
    devices = list(dict.fromkeys(each.uuid for each in placement.allocations))
    words = [str(placement.pod), placement.node, placement.scheduler, placement.phase, placement.ended_by, *devices]
    words += dict.fromkeys(each.model for each in placement.allocations)
    return {
        "@timestamp": rfc3339(placement.started_at),
        "ended_at": rfc3339(placement.ended_at) if placement.ended_at else None,
        # Null is not indexed, so ``exists`` finds only placements that have one.
        "ended_by": placement.ended_by or None,
        "cluster": placement.cluster,
        "attempt_id": placement.attempt_id or None,
        "namespace": placement.pod.namespace,
        "pod": placement.pod.name,
        "pod_uid": placement.pod.uid,
        "scheduler": placement.scheduler,
        "node": placement.node,
        "phase": placement.phase,
        "devices": devices,
        "allocations": placement.allocations,
        "known": known,
        "text": " ".join(word for word in words if word),
    }


def placement_of(document_id: str, document: dict[str, Any]) -> PodPlacement | Rejected:
    """The placement of a document of the occupancy index (its ``_id`` and ``_source``)."""
    names = ("cluster", "ended_at", "ended_by", "scheduler", "attempt_id", "node", "phase", "allocations")
    fields = {name: document[name] for name in names if document.get(name) is not None}
    pod = {"namespace": document.get("namespace"), "name": document.get("pod"), "uid": document.get("pod_uid") or ""}
    return read(
        PodPlacement, fields | {"id": document_id, "pod": pod, "started_at": document.get("@timestamp")}, "document"
    )
