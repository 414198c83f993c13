"""Obstacles of resource claims (DRA): per request the devices by reason, and of the nearest one what it fails.

Devices are explained on the nodes that the pod may use, or on all if it may use none.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.reasons import DeviceReason
from engine.diagnosis.claim_devices import RequestDevices, RequestKey, collect_request_devices
from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.filters import node_affinity, node_unschedulable, taint_toleration
from engine.filters.verdicts import StatusCode
from engine.snapshot.fields import FieldError

_CLOSING: Final = (node_unschedulable.NAME, taint_toleration.NAME, node_affinity.NAME)
_CODES: Final[Mapping[DeviceReason, str]] = {
    DeviceReason.POOL_OUTDATED: "DevicesUnusable",
    DeviceReason.POOL_INCOMPLETE: "DevicesUnusable",
    DeviceReason.POOL_INVALID: "DevicesUnusable",
    DeviceReason.NOT_JUDGED: "DevicesUnusable",
    DeviceReason.BINDING_NOT_SUPPORTED: "DevicesUnusable",
    DeviceReason.TAINTED: "DevicesTainted",
    DeviceReason.IN_USE: "DevicesInUse",
    DeviceReason.CAPACITY_EXHAUSTED: "DevicesInUse",
    DeviceReason.COUNTERS_EXHAUSTED: "DevicesInUse",
    DeviceReason.TAKEN_BY_POD: "DevicesTooFew",
    DeviceReason.TOO_FEW: "DevicesTooFew",
}
"""Obstacle of the reason of the nearest device; all other reasons are that the device is of another kind."""


def describe_claims(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe every request of a claim for which nodes have no devices."""
    errors = {name: refusal for name, refusal in refusals.items() if refusal.code is StatusCode.ERROR}
    for words in dict.fromkeys(refusal.reasons[0] for refusal in errors.values()):
        nodes = [name for name, refusal in errors.items() if refusal.reasons[0] == words]
        yield cluster.build_obstacle("ClaimError", nodes, {"words": words}, reasons=refusals)
    refused = {name: refusal for name, refusal in refusals.items() if name not in errors}
    if not refused:
        return
    requests = _explain_requests(cluster, refused)
    if not requests:
        # Without any device there is nothing to explain.
        yield _describe_unpublished(cluster, refused)
    for (claim, name), request in requests.items():
        yield _describe_request(cluster, claim, name, request, refused)


def _explain_requests(cluster: JudgedCluster, refused: Refusals) -> Mapping[RequestKey, RequestDevices]:
    judge = _build_judge(cluster)
    if judge is None:
        return {}
    return collect_request_devices(judge, (cluster.get_node(name).node for name in _select_nodes(cluster, refused)))


def _build_judge(cluster: JudgedCluster) -> ClaimsJudge | None:
    inventory = cluster.inventory or read_inventory(cluster.snapshot, select_gates(cluster.cycle.release))
    try:
        claims = collect_claims(inventory, cluster.cycle.pod, cluster.cycle.request)
    except (ClaimRejectedError, FieldError):
        return None
    return ClaimsJudge(inventory, claims)


def _select_nodes(cluster: JudgedCluster, refused: Refusals) -> list[str]:
    """Select nodes to explain: those that the pod may use, otherwise any."""
    meant = cluster.list_open_nodes(_CLOSING)
    return [name for name in refused if name in meant] or list(refused)


def _describe_unpublished(cluster: JudgedCluster, refused: Refusals) -> FoundObstacle:
    inventory: Inventory = cluster.inventory or read_inventory(cluster.snapshot)
    words: dict[str, Word] = {"classes": shorten_list(sorted(inventory.classes))}
    clauses = ["classes"] if inventory.classes else []
    obstacle = cluster.build_obstacle("DevicesNotPublished", refused, words, reasons=refused)
    return obstacle._replace(clauses=clauses)


def _describe_request(
    cluster: JudgedCluster, claim: str, name: str, request: RequestDevices, refused: Refusals
) -> FoundObstacle:
    devices = request.list_reasons()
    # The reason that is nearest to a fit decides: what another kind of device has does not matter.
    nearest, total = devices[0], len(request.reasons)
    example = nearest.examples[0]
    counts = {of_reason.reason: of_reason.devices for of_reason in devices}
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    words: dict[str, Word] = {
        "claim": claim.rpartition("/")[2],
        "class": request.request.class_name,
        "request": name,
        "wanted": request.wanted or 1,
        "devices": total,
        "counts": shorten_list([f"{count}/{total} {reason}" for reason, count in ordered]),
        "device": f"{example.device.rpartition('/')[2]} on {example.node}",
        "example": example.text,
    }
    numbers = {"devices": total, "devices_asked": request.wanted or 1, **counts}
    code = _CODES.get(DeviceReason(nearest.reason), "DevicesNotMatched")
    obstacle = cluster.build_obstacle(code, refused, words, numbers=numbers, reasons=refused)
    return obstacle._replace(devices=devices)
