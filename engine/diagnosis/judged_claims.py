"""Obstacles of resource claims (DRA): per request the devices by reason, and of the nearest one what it fails.

Devices are explained on the nodes that the pod may use, on a limited number of them: equal nodes have equal reasons.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.claims.explanation import ExplainedDevice, explain_node
from engine.claims.findings import DeviceFinding
from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.reasons import DeviceReason
from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.filters import node_affinity, node_unschedulable, taint_toleration
from engine.filters.verdicts import StatusCode
from engine.snapshot.fields import FieldError

MAX_EXPLAINED: Final = 40
"""Limit of the nodes whose devices are explained."""
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
_RANKS: Final = {reason: rank for rank, reason in enumerate(DeviceReason)}


@dataclass(slots=True)
class _Request:
    """A request over all nodes: reasons by device, and the findings of one device for each reason."""

    wanted: int | None
    reasons: dict[tuple[str, str, str], DeviceReason] = field(default_factory=dict)
    examples: dict[DeviceReason, tuple[str, ExplainedDevice]] = field(default_factory=dict)
    texts: Counter[str] = field(default_factory=Counter)

    def add(self, node: str, device: ExplainedDevice) -> None:
        """Count a device once, although several nodes may reach it."""
        reason = device.reason
        if reason and device.id not in self.reasons:
            self.reasons[device.id] = reason
            self.examples.setdefault(reason, (node, device))
            self.texts[_write_finding(device.findings[0])] += 1


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
        if request.reasons:
            yield _describe_request(cluster, claim, name, request, refused)


def _explain_requests(cluster: JudgedCluster, refused: Refusals) -> dict[tuple[str, str], _Request]:
    judge = _build_judge(cluster)
    if judge is None:
        return {}
    requests: dict[tuple[str, str], _Request] = {}
    for name in _select_nodes(cluster, refused):
        for explained in explain_node(judge, cluster.get_node(name).node).requests:
            key = (explained.claim, explained.request.full_name)
            request = requests.setdefault(key, _Request(explained.wanted))
            for device in explained.devices:
                request.add(name, device)
    return {key: request for key, request in requests.items() if request.reasons}


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
    return [name for name in refused if name in meant][:MAX_EXPLAINED] or list(refused)[:MAX_EXPLAINED]


def _describe_unpublished(cluster: JudgedCluster, refused: Refusals) -> FoundObstacle:
    inventory: Inventory = cluster.inventory or read_inventory(cluster.snapshot)
    words: dict[str, Word] = {"classes": shorten_list(sorted(inventory.classes))}
    clauses = ["classes"] if inventory.classes else []
    obstacle = cluster.build_obstacle("DevicesNotPublished", refused, words, reasons=refused)
    return obstacle._replace(clauses=clauses)


def _describe_request(
    cluster: JudgedCluster, claim: str, name: str, request: _Request, refused: Refusals
) -> FoundObstacle:
    counts = Counter(request.reasons.values())
    # The reason that is nearest to a fit decides: what another kind of device has does not matter.
    nearest = max(counts, key=lambda reason: _RANKS[reason])
    node, device = request.examples[nearest]
    total = len(request.reasons)
    words: dict[str, Word] = {
        "claim": claim.rpartition("/")[2],
        "request": name,
        "wanted": request.wanted or 1,
        "devices": total,
        "counts": shorten_list([f"{count}/{total} {reason.value}" for reason, count in counts.most_common()]),
        "device": f"{device.id[2]} on {node}",
        "example": _write_finding(device.findings[0]),
    }
    numbers = {"devices": total, "devices_asked": request.wanted or 1, **{r.value: n for r, n in counts.items()}}
    code = _CODES.get(nearest, "DevicesNotMatched")
    return cluster.build_obstacle(code, refused, words, numbers=numbers, reasons=refused)


def _write_finding(finding: DeviceFinding) -> str:
    return finding.text.rstrip(".")
