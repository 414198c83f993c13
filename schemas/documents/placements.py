"""The documents of the occupancy index: one for each placement of a pod on a node."""

from datetime import datetime
from typing import Any

from ..codec.records import Rejected, format_rfc3339, read
from ..indices import LAYERS
from ..placements import PodPlacement
from .attempts import build_description_fields


def build_placement_document(placement: PodPlacement, facts: dict[str, Any]) -> dict[str, Any]:
    """Build the document of a placement; its id is the placement's id. ``facts``: the facts that it was derived
    from."""
    # Several containers may share a device; in their order, so that the document is the same whenever it is written.
    devices = list(dict.fromkeys(allocation.uuid for allocation in placement.allocations))
    words = [str(placement.pod), placement.node, placement.scheduler, placement.phase, placement.ended_by, *devices]
    words += dict.fromkeys(allocation.model for allocation in placement.allocations)
    description = placement.description
    words += [description.workload, description.pod_group, description.queue] if description else []
    return {
        "@timestamp": format_rfc3339(placement.started_at),
        "ended_at": _format_moment(placement.ended_at),
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
        **build_description_fields(description),
        "description": description,
        "created_at": _format_moment(description.created_at if description else None),
        "first_judged_at": _format_moment(placement.first_judged_at),
        "judged_at": _format_moment(placement.judged_at),
        "bound_at": _format_moment(placement.bound_at),
        "running_at": _format_moment(placement.running_at),
        "waited_for": placement.waited_for,
        "obstacle": placement.obstacle or None,
        "placement_seconds": placement.placement_seconds,
        "start_seconds": placement.start_seconds,
        **{f"{layer}_wait_seconds": placement.layer_seconds.get(layer) for layer in LAYERS},
        **_build_forecast_fields(placement),
        "known": facts,
        "text": " ".join(word for word in words if word),
    }


def _build_forecast_fields(placement: PodPlacement) -> dict[str, Any]:
    """Build the fields of forecasts of its start, with how many of them the start has judged, and found right."""
    if not placement.forecasts:
        return {}
    verdicts = [forecast.judge(placement.started_at) for forecast in placement.forecasts]
    judged = [is_right for is_right in verdicts if is_right is not None]
    return {"forecasts": placement.forecasts, "forecasts_judged": len(judged), "forecasts_right": sum(judged)}


def _format_moment(moment: datetime | None) -> str | None:
    return format_rfc3339(moment) if moment else None


def read_placement(document_id: str, document: dict[str, Any]) -> PodPlacement | Rejected:
    """Read the placement of a document of the occupancy index (its ``_id`` and ``_source``)."""
    names = (
        "cluster", "ended_at", "ended_by", "scheduler", "attempt_id", "node", "phase", "allocations", "description",
        "first_judged_at", "judged_at", "bound_at", "running_at", "waited_for", "obstacle", "forecasts",
    )  # fmt: skip
    fields = {name: document[name] for name in names if document.get(name) is not None}
    pod = {"namespace": document.get("namespace"), "name": document.get("pod"), "uid": document.get("pod_uid") or ""}
    return read(
        PodPlacement, fields | {"id": document_id, "pod": pod, "started_at": document.get("@timestamp")}, "document"
    )
