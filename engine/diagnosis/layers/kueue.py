"""Kueue's Workload behind a pod or its Job: which queue holds it, what it lacks in which flavor, whether it can start.

Kueue writes its reason into the condition QuotaReserved of the Workload (since v0.19 one of nine words, before that
``Pending``), and the details into its message; the amounts stand in the ClusterQueue. A queue that is stopped has its
cause in a condition of its own. Kueue's source: pkg/scheduler/flavorassigner, apis/kueue.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.kueue_checks import describe_checks, explain_checks, explain_rejection, explain_remote
from engine.diagnosis.layers.kueue_messages import QuotaMaximum, choose_part, find_maxima, find_shortages, list_refusals
from engine.diagnosis.layers.kueue_quota import (
    describe_place,
    explain_shortage,
    find_head,
    is_preempted,
    name_workloads,
)
from engine.diagnosis.layers.kueue_workloads import (
    CLUSTER_QUEUE,
    DOMAIN,
    FLAVOR,
    LOCAL_QUEUE,
    Workload,
    find_workload,
    list_competitors,
)
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import join_phrases, quote, shorten_list
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import Condition

_ADMITTED: Final = FoundObstacle("KueueAdmitted")
_UNCOVERED: Final = re.compile(r"resource (?P<resource>[^\s,;]+) unavailable in ClusterQueue")
_TOPOLOGY: Final = re.compile(
    r"topology \"(?P<topology>[^\"]+)\" "
    r"(?:allows to fit only (?P<fit>-?\d+) out of (?P<pods>\d+) pod|doesn't allow to fit)"
)
_EXCLUDED: Final = re.compile(r"Total nodes: (?P<total>\d+); excluded: (?P<excluded>[^.]*(?:\.(?! )[^.]*)*)")
_LEVEL: Final = re.compile(r"no topology domains? at level:? \"?(?P<level>[^\s\",;]+)")
_MISSING: Final = re.compile(r"(?P<kind>LocalQueue|ClusterQueue) (?P<queue>\S+) doesn't exist")
_UNREADY: Final = "all admitted workloads to be in PodsReady condition"
_OVERTAKEN: Final = "no longer fits after processing another workload"
_STOPPED: Final = ("Stopped", "Terminating")
"""Reasons of a queue's condition Active that somebody has caused on purpose."""
_STOP_POLICIES: Final = ("Hold", "HoldAndDrain")
_INACTIVE: Final = re.compile(r"(?P<kind>LocalQueue|ClusterQueue) (?P<queue>\S+) is inactive")


def explain_workload(facts: DiagnosisFacts, workload: Workload, gates: Sequence[str] = ()) -> FoundObstacle:
    """Explain why Kueue holds the Workload."""
    reserved = workload.find_condition("QuotaReserved")
    path = f"/apis/{DOMAIN}/v1beta2/namespaces/{facts.namespace}/workloads/{workload.name}"
    message = reserved.message if reserved else ""
    # The pod of a Workload that was read alone does not exist: it is made of the Workload's own template.
    is_alone = facts.pod is not None and f"Workload/{workload.name}" in facts.pod.owners
    words: dict[str, Word] = {
        "workload": workload.name,
        "held": write_phrase("held_workload" if is_alone else "held_pod", workload=workload.name),
        "local_queue": get_text(workload.object, "spec", "queueName") or "?",
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


def check_flavor(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether a node has the labels of the flavor in which Kueue has admitted the pod's Workload."""
    workload = find_workload(facts)
    objects = facts.objects
    if workload is None or objects is None or not workload.is_admitted or not objects.has_read(kinds.NODE):
        return
    sets = iterate_objects(workload.object, "status", "admission", "podSetAssignments")
    flavors = sorted({str(name) for entry in sets for name in get_object(entry, "flavors").values()})
    nodes = [get_object(node, "metadata", "labels") for node in objects.select(kinds.NODE)]
    for name in flavors:
        labels = get_object(objects.find(FLAVOR, name), "spec", "nodeLabels")
        if labels and not any(labels.items() <= node.items() for node in nodes):
            terms = shorten_list([f"{key}={value}" for key, value in labels.items()])
            words: dict[str, Word] = {"flavor": name, "labels": terms, "queue": workload.cluster_queue or "?"}
            evidence = [Evidence("workload", f"ResourceFlavor {name}", facts.now)]
            yield TreeStep(
                "NodesOpen", "no", evidence, (), [FoundObstacle("FlavorWithoutNode", words, evidence=evidence)]
            )
            return


def _explain(workload: Workload, reserved: Condition | None) -> FoundObstacle:
    if rejection := explain_rejection(workload):
        return rejection
    if remote := explain_remote(workload):
        return remote
    if workload.is_admitted and not _is_taken_back(workload):
        suspended = _list_suspended(workload)
        return FoundObstacle("KueueAdmittedSuspended", {"owners": shorten_list(suspended)}) if suspended else _ADMITTED
    if not workload.is_active:
        return _explain_deactivated(workload)
    if _is_taken_back(workload) and (eviction := _explain_eviction(workload)):
        return eviction
    if reserved and reserved.status == "True":
        return explain_checks(workload)
    if obstacle := _explain_queue(workload, reserved) or _explain_eviction(workload):
        return obstacle
    if reserved is None:
        return _explain_silence(workload)
    return _explain_refusal(workload, reserved)


def _list_suspended(workload: Workload) -> list[str]:
    """List the owners of an admitted Workload that are suspended although it was admitted."""
    return [
        f"{get_text(owner, 'kind')}/{name}"
        for owner in iterate_objects(workload.object, "metadata", "ownerReferences")
        if (kind := kinds.identify(get_text(owner, "apiVersion"), get_text(owner, "kind")))
        and (name := get_text(owner, "name"))
        and get_object(workload.objects.find(kind, name, workload.namespace), "spec").get("suspend") is True
    ]


def _is_taken_back(workload: Workload) -> bool:
    """Tell whether Kueue has evicted the Workload after its admission, whose condition it may keep."""
    admitted, evicted = workload.find_condition("Admitted"), workload.find_condition("Evicted")
    if admitted is None or evicted is None or evicted.status != "True":
        return False
    times = evicted.last_transition_at, admitted.last_transition_at
    return times[0] is not None and times[1] is not None and times[0] > times[1]


def _explain_deactivated(workload: Workload) -> FoundObstacle:
    evicted = workload.find_condition("Evicted")
    why = quote(f"{evicted.reason}: {evicted.message}") if evicted and evicted.status == "True" else ""
    return FoundObstacle("KueueDeactivated", {"why": why}, clauses=["why"] if why else [])


def _explain_queue(workload: Workload, reserved: Condition | None) -> FoundObstacle | None:
    """Explain a queue that does not exist or takes no workloads. The ClusterQueue's words explain the LocalQueue's."""
    message = reserved.message if reserved else ""
    if match := _MISSING.search(message):
        return FoundObstacle("KueueQueueMissing", match.groupdict())
    if obstacle := _explain_missing_queue(workload):
        return obstacle
    candidates = (("ClusterQueue", workload.queue), ("LocalQueue", workload.local_queue))
    for kind, queue in candidates if not find_shortages(message) else ():
        if obstacle := explain_inactive_queue(kind, queue or {}):
            return obstacle
    if match := _INACTIVE.search(message):
        return FoundObstacle("KueueQueueStopped", {"kind": match["kind"], "stopped": match["queue"]})
    return None


def explain_inactive_queue(kind: str, queue: Fields) -> FoundObstacle | None:
    """Explain why a queue takes no workloads, by its condition Active and its policy; None for one that does."""
    active = next((entry for entry in list_conditions(queue) if entry.type == "Active"), None)
    policy = get_text(queue, "spec", "stopPolicy")
    if not (active and active.status == "False") and policy in ("", "None"):
        return None
    why = quote(f"{active.reason}: {active.message}" if active else f"stopPolicy: {policy}")
    names: dict[str, Word] = {"kind": kind, "stopped": get_text(queue, "metadata", "name"), "why": why}
    is_broken = active is not None and policy in ("", "None") and active.reason not in _STOPPED
    clauses = ["why", *(["policy"] if active and policy not in ("", "None") else [])]
    names["policy"] = write_phrase(f"stop_policy_{policy}") if policy in _STOP_POLICIES else quote(policy)
    return FoundObstacle("KueueQueueBroken" if is_broken else "KueueQueueStopped", names, clauses=clauses)


def _explain_missing_queue(workload: Workload) -> FoundObstacle | None:
    """Explain a queue that no object has, although the queues were read: Kueue may not have written so yet."""
    local, objects = get_text(workload.object, "spec", "queueName"), workload.objects
    if local and workload.local_queue is None and objects.has_read(LOCAL_QUEUE):
        return FoundObstacle("KueueQueueMissing", {"kind": "LocalQueue", "queue": local})
    name = get_text(workload.local_queue, "spec", "clusterQueue")
    if name and workload.queue is None and objects.has_read(CLUSTER_QUEUE):
        return FoundObstacle("KueueQueueMissing", {"kind": "ClusterQueue", "queue": name})
    return None


def _explain_eviction(workload: Workload) -> FoundObstacle | None:
    """Explain a Workload that Kueue took back for another reason than preemption, until it puts it into the queue."""
    evicted, requeued = workload.find_condition("Evicted"), workload.find_condition("Requeued")
    is_back = requeued is not None and requeued.status == "True"
    if evicted is None or evicted.status != "True" or is_back or is_preempted(workload):
        return None
    state = get_object(workload.object, "status", "requeueState")
    checks = describe_checks(workload) if evicted.reason == "AdmissionCheck" else ""
    words: dict[str, Word] = {
        "why": quote(f"{evicted.reason}: {evicted.message}"),
        "checks": checks,
        "count": count if isinstance(count := state.get("count"), int) else 0,
        "again_at": get_text(state, "requeueAt"),
        "last": _find_last_words(workload),
    }
    clauses = [*(["checks"] if checks else []), *(["last"] if words["last"] else [])]
    clauses += [name for name in ("count", "again_at") if words[name]]
    code = "KueuePodsNotReady" if evicted.reason == "PodsReadyTimeout" else "KueueEvicted"
    return FoundObstacle(code, words, clauses=clauses)


def _find_last_words(workload: Workload) -> str:
    """Find what a scheduler last wrote about a pod of the Workload that is gone: pods are named after their owner."""
    owner = workload.subject.partition("/")[2]
    objects = workload.objects
    events = [
        event
        for namespace, name in objects.list_event_subjects("Pod")
        if namespace == workload.namespace and (name == owner or name.startswith(f"{owner}-"))
        for event in objects.select_events("Pod", name, namespace)
        if event.reason == "FailedScheduling"
    ]
    latest = max(events, key=lambda event: event.time.timestamp() if event.time else 0.0, default=None)
    return quote(latest.note) if latest else ""


def _explain_silence(workload: Workload) -> FoundObstacle:
    """Explain a Workload without a word of Kueue: behind the head of a queue that keeps the order strictly."""
    is_strict = get_text(workload.queue, "spec", "queueingStrategy") == "StrictFIFO"
    words, place_clauses = describe_place(workload)
    head = find_head(workload) if is_strict else None
    if head:
        words["head"] = name_workloads(workload, [head])
    clauses = ["strict"] if is_strict else []
    clauses += ["head"] if head else []
    # The head is the only one before the second.
    clauses += [name for name in place_clauses if not (head and name == "before" and words["place"] == 2)]
    return FoundObstacle("KueueQueued", words, clauses=clauses)


def _explain_refusal(workload: Workload, reserved: Condition) -> FoundObstacle:
    text, message = reserved.message, choose_part(reserved.message, workload.queue)
    waits = (find_shortages(message) and message == text) or is_preempted(workload)
    if reserved.reason != "ExceedsMaxQuota" and waits:
        return explain_shortage(workload, text, list_refusals(text))
    if maxima := find_maxima(message):
        return _explain_maximum(maxima[0], list_refusals(message))
    if match := _TOPOLOGY.search(message):
        words: dict[str, Word] = {name: text or "" for name, text in match.groupdict().items()}
        excluded = _EXCLUDED.search(message)
        words |= excluded.groupdict() if excluded else {}
        # Kueue counts below zero where pods that it did not place use the topology's nodes.
        is_count = bool(match["fit"]) and not match["fit"].startswith("-")
        clauses = [*(["fit"] if is_count else []), *(["excluded"] if excluded else [])]
        return FoundObstacle("KueueTopology", words, clauses=clauses)
    if match := _LEVEL.search(message):
        return FoundObstacle("KueueTopologyLevel", match.groupdict())
    if match := _UNCOVERED.search(message):
        return FoundObstacle("KueueResourceUncovered", match.groupdict())
    if flavors := list_refusals(message):
        return FoundObstacle("KueueFlavorRefused", {"flavors": join_phrases(flavors)})
    if reserved.reason == "WaitingForPodsReady" or _UNREADY in message:
        return _explain_unready(workload)
    if "namespace doesn't match ClusterQueue selector" in message:
        return _explain_namespace(workload)
    return FoundObstacle("KueueOvertaken" if _OVERTAKEN in message else "KueueRefused", {})


def _explain_maximum(maximum: QuotaMaximum, flavors: Sequence[InBothLanguages]) -> FoundObstacle:
    """Explain a request that is larger than what the queue may ever have. ``flavors``: why each of them is out."""
    words: dict[str, Word] = {"resource": maximum.resource, "flavor": maximum.flavor}
    words |= {"asked": maximum.request, "maximum": maximum.limit, "flavors": join_phrases(flavors)}
    clauses = [name for name in ("maximum", "asked") if words[name]]
    return FoundObstacle("KueueExceedsMaximum", words, clauses=[*clauses, *(["flavors"] if len(flavors) > 1 else [])])


def _explain_unready(workload: Workload) -> FoundObstacle:
    """Explain an admission that waits for pods of other Workloads, which are named as far as they were read."""
    unready = [
        other
        for other in list_competitors(workload, everywhere=True)
        if other.is_admitted and (ready := other.find_condition("PodsReady")) and ready.status == "False"
    ]
    words: dict[str, Word] = {"unready": name_workloads(workload, unready)}
    return FoundObstacle("KueueWaitsForReady", words, clauses=["unready"] if unready else [])


def _explain_namespace(workload: Workload) -> FoundObstacle:
    selector = get_object(workload.queue, "spec", "namespaceSelector")
    terms = [f"{name}={value}" for name, value in get_object(selector, "matchLabels").items()]
    terms += [
        f"{get_text(term, 'key')} {get_text(term, 'operator')} {', '.join(map(str, term.get('values') or ()))}".strip()
        for term in iterate_objects(selector, "matchExpressions")
    ]
    return FoundObstacle(
        "KueueNamespaceExcluded", {"selector": shorten_list(terms)}, clauses=["selector"] if terms else []
    )
