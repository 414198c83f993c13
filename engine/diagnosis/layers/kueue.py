"""Kueue's Workload behind a pod or its Job: which queue holds it, what it lacks in which flavor, whether it can start.

Kueue writes its reason into the condition QuotaReserved of the Workload (since v0.19 one of nine words, before that
``Pending``), and the details into its message; the amounts stand in the ClusterQueue. A queue that is stopped has its
cause in a condition of its own. Kueue's source: pkg/scheduler/flavorassigner, apis/kueue.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import quote, shorten_list
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions
from schemas.events import Condition

if TYPE_CHECKING:
    from engine.snapshot.case_objects import CaseObjects

WORKLOAD: Final = "Workload.kueue.x-k8s.io"
LOCAL_QUEUE: Final = "LocalQueue.kueue.x-k8s.io"
CLUSTER_QUEUE: Final = "ClusterQueue.kueue.x-k8s.io"
DOMAIN: Final = "kueue.x-k8s.io"
QUEUE_LABEL: Final = f"{DOMAIN}/queue-name"
_GROUP_LABEL: Final = f"{DOMAIN}/pod-group-name"
_WORKLOAD_ANNOTATION: Final = f"{DOMAIN}/workload"

_UNUSED: Final = re.compile(
    r"insufficient unused quota for (?P<resource>[^\s,;]+) in flavor (?P<flavor>[^\s,;]+), "
    r"(?P<needed>[^\s,;]+) more needed"
)
_MAXIMUM: Final = re.compile(
    r"insufficient quota for (?P<resource>[^\s,;]+) in flavor (?P<flavor>[^\s,;]+),.*?(?:\((?P<asked>[^()]*)\) > )?"
    r"maximum capacity \((?P<maximum>[^()]*)\)"
)
_TAINT: Final = re.compile(r"untolerated taint \{(?P<taint>[^}]*)\} in flavor (?P<flavor>[^\s,;]+)")
_AFFINITY: Final = re.compile(r"flavor (?P<flavor>[^\s,;]+) doesn't match (?:node|with node) affinity")
_UNCOVERED: Final = re.compile(r"resource (?P<resource>[^\s,;]+) unavailable in ClusterQueue")
_TOPOLOGY: Final = re.compile(
    r"topology \"(?P<topology>[^\"]+)\" "
    r"(?:allows to fit only (?P<fit>\d+) out of (?P<pods>\d+) pod|doesn't allow to fit)"
)
_MISSING: Final = re.compile(r"(?P<kind>LocalQueue|ClusterQueue) (?P<queue>\S+) doesn't exist")
_IN_QUEUE: Final = re.compile(r"(?:reserved in|[Aa]dmitted by) ClusterQueue (?P<queue>[^\s,;.]+)")
_INACTIVE: Final = re.compile(r"(?P<kind>LocalQueue|ClusterQueue) (?P<queue>\S+) is inactive")


def is_gate(gate: str) -> bool:
    """Tell whether a scheduling gate is Kueue's."""
    return gate.partition("/")[0] == DOMAIN


@dataclass(frozen=True, slots=True)
class Workload:
    """A Workload with its queues, as far as they were read."""

    object: Fields
    local_queue: Fields | None
    queue: Fields | None

    @property
    def name(self) -> str:
        """Name of the Workload."""
        return get_text(self.object, "metadata", "name")

    @property
    def cluster_queue(self) -> str:
        """Name of its ClusterQueue, empty if no object names it."""
        named = get_text(self.object, "status", "admission", "clusterQueue")
        return named or get_text(self.local_queue, "spec", "clusterQueue") or self._find_queue_in_words()

    def _find_queue_in_words(self) -> str:
        matches = (_IN_QUEUE.search(condition.message) for condition in list_conditions(self.object))
        return next((match["queue"] for match in matches if match), "")

    @property
    def is_admitted(self) -> bool:
        """True if Kueue lets its pods go."""
        return any(entry.type == "Admitted" and entry.status == "True" for entry in list_conditions(self.object))

    def find_condition(self, kind: str) -> Condition | None:
        """Find a condition by its type."""
        return next((entry for entry in list_conditions(self.object) if entry.type == kind), None)


def find_workload(facts: DiagnosisFacts) -> Workload | None:
    """Find the Workload of the pod, of its group or of its owner; None if none was read."""
    if facts.objects is None or facts.pod is None:
        return None
    names = {facts.pod.labels.get(_GROUP_LABEL, ""), facts.pod.annotations.get(_WORKLOAD_ANNOTATION, "")} - {""}
    owners = {f"Pod/{facts.name}", *facts.pod.owners}
    for entry in facts.objects.select(WORKLOAD, facts.namespace):
        if get_text(entry, "metadata", "name") in names or owners & set(_list_owners(entry)):
            return _build_workload(facts.objects, entry, facts.namespace)
    return None


def _list_owners(entry: Fields) -> Iterator[str]:
    for owner in iterate_objects(entry, "metadata", "ownerReferences"):
        yield f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}"


def _build_workload(objects: "CaseObjects", entry: Fields, namespace: str) -> Workload:
    local_queue = objects.find(LOCAL_QUEUE, get_text(entry, "spec", "queueName"), namespace)
    workload = Workload(entry, local_queue, None)
    return Workload(entry, local_queue, objects.find(CLUSTER_QUEUE, workload.cluster_queue))


def explain_workload(facts: DiagnosisFacts, workload: Workload, gates: Sequence[str] = ()) -> FoundObstacle:
    """Explain why Kueue holds the Workload."""
    reserved = workload.find_condition("QuotaReserved")
    path = f"/apis/{DOMAIN}/v1beta2/namespaces/{facts.namespace}/workloads/{workload.name}"
    message = reserved.message if reserved else ""
    words: dict[str, Word] = {
        "workload": workload.name,
        "local_queue": get_text(workload.object, "spec", "queueName"),
        "queue": workload.cluster_queue or "?",
        "namespace": facts.namespace,
        "gates": shorten_list(gates),
        "words": quote(f"{reserved.reason}: {message}" if reserved else ""),
    }
    evidence = [
        Evidence("workload", path, reserved.last_transition_at if reserved else facts.now, words=str(words["words"]))
    ]
    obstacle = _explain(workload, reserved)
    return obstacle._replace(words={**words, **obstacle.words}, evidence=evidence)


def _explain(workload: Workload, reserved: Condition | None) -> FoundObstacle:
    if workload.is_admitted:
        return FoundObstacle("KueueAdmitted")
    if (get_object(workload.object, "spec").get("active")) is False:
        return _explain_deactivated(workload)
    if reserved and reserved.status == "True":
        return _explain_checks(workload)
    if obstacle := _explain_queue(workload, reserved):
        return obstacle
    if reserved is None:
        return _explain_silence(workload)
    return _explain_refusal(workload, reserved)


def _explain_deactivated(workload: Workload) -> FoundObstacle:
    evicted = workload.find_condition("Evicted")
    why = quote(f"{evicted.reason}: {evicted.message}") if evicted and evicted.status == "True" else ""
    return FoundObstacle("KueueDeactivated", {"why": why}, clauses=["why"] if why else [])


def _explain_checks(workload: Workload) -> FoundObstacle:
    """Explain a Workload that has its quota, and waits for admission checks or its topology."""
    checks = [
        f"{get_text(check, 'name')} is {get_text(check, 'state')}"
        + (f" ({quote(why)})" if (why := get_text(check, "message")) else "")
        for check in iterate_objects(workload.object, "status", "admissionChecks")
        if get_text(check, "state") != "Ready"
    ]
    admitted = workload.find_condition("Admitted")
    why = "; ".join(checks) or (quote(f"{admitted.reason}: {admitted.message}") if admitted else "")
    return FoundObstacle("KueueChecks", {"why": why}, clauses=["why"] if why else [])


def _explain_queue(workload: Workload, reserved: Condition | None) -> FoundObstacle | None:
    """Explain a queue that does not exist or takes no workloads."""
    message = reserved.message if reserved else ""
    if match := _MISSING.search(message):
        return FoundObstacle("KueueQueueMissing", match.groupdict())
    candidates = (("LocalQueue", workload.local_queue), ("ClusterQueue", workload.queue))
    for kind, queue in candidates if not _UNUSED.search(message) else ():
        active = next((entry for entry in list_conditions(queue or {}) if entry.type == "Active"), None)
        policy = get_text(queue, "spec", "stopPolicy")
        if (active and active.status == "False") or policy not in ("", "None"):
            why = quote(f"{active.reason}: {active.message}" if active else f"stopPolicy: {policy}")
            names: dict[str, Word] = {"kind": kind, "stopped": get_text(queue, "metadata", "name"), "why": why}
            return FoundObstacle("KueueQueueStopped", names, clauses=["why"])
    if match := _INACTIVE.search(message):
        return FoundObstacle("KueueQueueStopped", {"kind": match["kind"], "stopped": match["queue"]})
    return None


def _explain_silence(workload: Workload) -> FoundObstacle:
    """Explain a Workload without a word of Kueue: behind the head of a queue that keeps the order strictly."""
    is_strict = get_text(workload.queue, "spec", "queueingStrategy") == "StrictFIFO"
    pending = _get_pending(workload.queue)
    clauses = [*(["strict"] if is_strict else []), *(["pending"] if pending else [])]
    return FoundObstacle("KueueQueued", {"pending": pending}, clauses=clauses)


def _get_pending(queue: Fields | None) -> int:
    pending = get_object(queue, "status").get("pendingWorkloads")
    return pending if isinstance(pending, int) else 0


def _explain_refusal(workload: Workload, reserved: Condition) -> FoundObstacle:
    message = reserved.message
    if shortages := list(_UNUSED.finditer(message)):
        return _explain_shortage(workload, reserved, shortages)
    if match := _MAXIMUM.search(message):
        return FoundObstacle("KueueExceedsMaximum", {**match.groupdict(""), "resource": match["resource"]})
    if match := _TOPOLOGY.search(message):
        clauses = ["fit"] if match["fit"] else []
        return FoundObstacle("KueueTopology", {name: match[name] or "" for name in match.groupdict()}, clauses=clauses)
    if match := _UNCOVERED.search(message):
        return FoundObstacle("KueueResourceUncovered", match.groupdict())
    if refusals := list(_iterate_flavors(message)):
        return FoundObstacle("KueueFlavorRefused", {"flavors": shorten_list(refusals)})
    if reserved.reason == "WaitingForPodsReady":
        return FoundObstacle("KueueWaitsForReady", {})
    return FoundObstacle("KueueRefused", {})


def _iterate_flavors(message: str) -> Iterator[str]:
    for match in _TAINT.finditer(message):
        yield f"{match['flavor']} has the taint {match['taint'].replace(' <nil>', '')}"
    for match in _AFFINITY.finditer(message):
        yield f"{match['flavor']} does not match the node selector or affinity"


def _explain_shortage(workload: Workload, reserved: Condition, shortages: Sequence[re.Match[str]]) -> FoundObstacle:
    """Explain quota that is in use: of the first resource that lacks, in the flavor that lacks least listed first."""
    first = shortages[0]
    words: dict[str, Word] = {
        "resource": first["resource"],
        "flavor": first["flavor"],
        "needed": first["needed"].rstrip("."),
        "pending": _get_pending(workload.queue),
        "others": shorten_list(
            [f"{match['needed']} of {match['resource']} in {match['flavor']}" for match in shortages[1:]]
        ),
        "flavors": shorten_list(list(_iterate_flavors(reserved.message))),
    }
    clauses = []
    nominal, used, borrowed = _get_amounts(workload.queue, first["flavor"], first["resource"])
    if nominal and used:
        words |= {"nominal": nominal, "used": used, "borrowed": borrowed}
        clauses.append("amounts")
        clauses += ["borrowed"] if borrowed not in ("", "0") else []
    clauses += ["others"] if len(shortages) > 1 else []
    clauses += ["flavors"] if list(_iterate_flavors(reserved.message)) else []
    clauses += ["pending"] if words["pending"] else []
    clauses += ["preempting"] if "Pending the preemption of" in reserved.message else []
    clauses += ["lent"] if nominal and used and _is_less(used, nominal) else []
    numbers = {
        name: int(str(words[name])) for name in ("needed", "nominal", "used") if str(words.get(name, "")).isdecimal()
    }
    return FoundObstacle("KueueWaitsForQuota", words, numbers, clauses=clauses)


def _is_less(used: str, nominal: str) -> bool:
    return used.isdecimal() and nominal.isdecimal() and int(used) < int(nominal)


def _get_amounts(queue: Fields | None, flavor: str, resource: str) -> tuple[str, str, str]:
    """Get the nominal quota, the amount in use and the part of it that is borrowed; empty if not read."""
    groups = iterate_objects(queue, "spec", "resourceGroups")
    flavors = (entry for group in groups for entry in iterate_objects(group, "flavors"))
    nominal = _find_amount(flavors, flavor, resource, "nominalQuota")
    reserved = list(iterate_objects(queue, "status", "flavorsReservation"))
    usage = reserved or list(iterate_objects(queue, "status", "flavorsUsage"))
    used = _find_amount(usage, flavor, resource, "total")
    return nominal, used, _find_amount(usage, flavor, resource, "borrowed")


def _find_amount(flavors: Iterable[Fields], flavor: str, resource: str, field: str) -> str:
    for entry in flavors:
        for amount in iterate_objects(entry, "resources") if get_text(entry, "name") == flavor else ():
            if get_text(amount, "name") == resource and field in amount:
                return str(amount[field])
    return ""
