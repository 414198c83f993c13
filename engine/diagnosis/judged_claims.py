"""Obstacles of resource claims (DRA): per request the devices by reason, and of the nearest one what it fails.

Devices are explained on the nodes that the pod may use, or on all if it may use none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import NOT_ON_NODE, ClaimsJudge
from engine.claims.judgement import DeviceReason
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.diagnosis.claim_devices import RequestKey, RequestTally, collect_request_devices
from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.outcome import DevicesOfReason, FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import cut_first_line, shorten_list
from engine.filters import node_affinity, node_unschedulable, taint_toleration
from engine.filters.verdicts import StatusCode
from engine.snapshot import kinds
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
    DeviceReason.CONSTRAINT_NOT_MET: "DevicesTooFew",
    DeviceReason.TAKEN_BY_POD: "DevicesTooFew",
    DeviceReason.TOO_FEW: "DevicesTooFew",
}
"""Obstacle of the reason of the nearest device; all other reasons are that the device is of another kind."""


def describe_claims(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe every request of a claim for which nodes have no devices."""
    judge = _build_judge(cluster)
    errors = {name: refusal for name, refusal in refusals.items() if refusal.code is StatusCode.ERROR}
    for words in dict.fromkeys(refusal.reasons[0] for refusal in errors.values()):
        nodes = [name for name, refusal in errors.items() if refusal.reasons[0] == words]
        obstacle = cluster.build_obstacle("ClaimError", nodes, {"words": cut_first_line(words)}, reasons=refusals)
        yield obstacle._replace(devices=_list_failing_devices(cluster, judge, nodes))
    # The devices of an allocated claim are chosen: only its node matters.
    elsewhere = {name: refusal for name, refusal in refusals.items() if NOT_ON_NODE in refusal.reasons}
    if elsewhere:
        yield cluster.build_obstacle("ClaimNotOnNode", elsewhere, {}, reasons=refusals)
    refused = {name: refusal for name, refusal in refusals.items() if name not in errors.keys() | elsewhere.keys()}
    if not refused:
        return
    tallies = _collect(cluster, judge, _select_nodes(cluster, refused))
    if judge is None or not tallies:
        # Without any device there is nothing to explain.
        yield _describe_unpublished(cluster, refused)
        return
    for (claim, _), tally in tallies.items():
        yield _describe_request(cluster, _write_subject(judge, claim, tally), tally, refused)


def _collect(
    cluster: JudgedCluster, judge: ClaimsJudge | None, nodes: Iterable[str]
) -> Mapping[RequestKey, RequestTally]:
    return collect_request_devices(judge, (cluster.get_node(name).node for name in nodes)) if judge else {}


def _list_failing_devices(
    cluster: JudgedCluster, judge: ClaimsJudge | None, nodes: Iterable[str]
) -> list[DevicesOfReason]:
    """List the devices on which a selector fails, of the first request that has some."""
    for tally in _collect(cluster, judge, nodes).values():
        failing = [item for item in tally.list_reasons() if item.reason == DeviceReason.SELECTOR_ERROR]
        if failing:
            return failing
    return []


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
    slices = [item.to_sentence().rstrip(".") for item in inventory.rejected if item.kind == kinds.RESOURCE_SLICE]
    if slices:
        words["left_out"] = shorten_list(slices)
        clauses.append("left_out")
    obstacle = cluster.build_obstacle("DevicesNotPublished", refused, words, reasons=refused)
    return obstacle._replace(clauses=clauses)


def _write_subject(judge: ClaimsJudge, claim: str, tally: RequestTally) -> dict[str, Word]:
    """Write which request the devices are for: that of a claim, or a resource for which kube-scheduler makes one up."""
    name, request = claim.rpartition("/")[2], tally.request
    words: dict[str, Word] = {"claim": name, "request": request.full_name, "class": request.class_name}
    extended = judge.pod_claims.extended
    if extended is None or name != extended.name:
        return words | {"subject": write_phrase("request_of_claim", claim=name, request=request.full_name)}
    resources = [resource for resource in extended.amounts if extended.classes.get(resource) == request.class_name] or [
        request.full_name
    ]
    phrase = write_phrase("request_of_resource", resource=", ".join(resources), class_name=request.class_name)
    return words | {"subject": phrase}


def _describe_request(
    cluster: JudgedCluster, subject: Mapping[str, Word], tally: RequestTally, refused: Refusals
) -> FoundObstacle:
    devices = tally.list_reasons()
    deciding, total = _choose_deciding(devices, wants_all=tally.wanted is None), len(tally.reasons)
    example = deciding.examples[0]
    counts = {of_reason.reason: of_reason.devices for of_reason in devices}
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    words: dict[str, Word] = {
        **subject,
        "wanted": tally.wanted or 1,
        "devices": total,
        "counts": shorten_list([f"{count}/{total} {reason}" for reason, count in ordered]),
        "device": write_phrase("on_node", object=example.device.rpartition("/")[2], node=example.node),
        "example": example.text,
    }
    numbers = {"devices": total, "devices_asked": tally.wanted or 1, **counts}
    code = _CODES.get(DeviceReason(deciding.reason), "DevicesNotMatched")
    obstacle = cluster.build_obstacle(code, refused, words, numbers=numbers, reasons=refused)
    return obstacle._replace(devices=devices)


_SHORT: Final = (DeviceReason.TOO_FEW, DeviceReason.TAKEN_BY_POD)
"""Reasons of devices that would do by themselves."""


def _choose_deciding(devices: Sequence[DevicesOfReason], *, wants_all: bool) -> DevicesOfReason:
    """Choose the reason that is nearest to a fit: what another kind of device has does not matter.

    A constraint is why too few devices fit together. A request for all devices of a node fails by one that is held.
    """
    held = [item for item in devices if wants_all and item.reason == DeviceReason.IN_USE]
    if held:
        return held[0]
    constrained = [item for item in devices if item.reason == DeviceReason.CONSTRAINT_NOT_MET]
    return constrained[0] if constrained and devices[0].reason in _SHORT else devices[0]
