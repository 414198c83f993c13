"""Diagnosis of pods that a workload has not made: the layers that hold it, or the words that refused them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from engine.cases.pod_facts import CaseFacts
from engine.cases.unmade_causes import explain_without_workload, find_cause, find_misplaced_queue
from engine.cases.unmade_pods import build_unmade_pod
from engine.cases.workload_words import KUEUE_WORKLOAD, VOLCANO_GROUP
from engine.cases.workloads import CaseWorkload, count_wanted, get_state, is_suspended, list_family
from engine.diagnosis.facts import DiagnosisFacts, Evidence, OwnerProblem, PodOnCluster
from engine.diagnosis.layers import gangs, gates, queues
from engine.diagnosis.layers.kueue_workloads import QUEUE_LABEL
from engine.diagnosis.layers.pod_makers import REFUSALS, extract_refusal
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.tree import build_diagnosis, diagnose
from engine.diagnosis.wording import NOTHING, count_devices, quote
from engine.fit.events.event_builder import to_request
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.vendor_catalog import list_vendors
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import Fields, get_object, get_text, list_conditions, parse_moment
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.events import ObjectProblem

NOT_MADE: Final = "PodsNotMade"
"""Obstacle of pods of which nothing says why they do not exist."""
_NOT_READ: Final = "PodsNotRead"
_MANIFEST: Final = "NotFromCluster"
GROUP_NOT_PLACED: Final = "GroupNotPlaced"
"""Obstacle of a group of which no pod was read."""
OF_UNREAD_PODS: Final = (GROUP_NOT_PLACED, _NOT_READ, _MANIFEST)
"""Obstacles of workloads whose pods were not read: whether they exist is open."""
_COUNTS: Final = ("replicas", "active", "ready", "currentNumberScheduled")
"""Numbers of pods that exist, in the status of their controller."""
MAX_QUOTED: Final = 3
_ABOVE_NODES: Final = frozenset((gates.QUESTION, queues.QUESTION, gangs.QUESTION))


class UnmadeWorkload(NamedTuple):
    """A workload without pods, as a list has it."""

    obstacle: Obstacle | None
    created_at: datetime | None
    queue: str
    """Queue that it names; empty where it names none."""
    pods: int
    """Number of pods that it wants; 0 where its kind does not say."""
    devices: int
    """Devices of these pods together."""


def explain_unmade(objects: CaseObjects, now: datetime, key: CaseWorkload) -> UnmadeWorkload:
    """Explain a workload without pods for a list."""
    family = list_family(objects, key)
    wanted = count_pods(objects, key, family) or 0
    pod = build_unmade_pod(objects, key, family)
    diagnosis = diagnose_unmade(build_unmade_facts(objects, now, key, pod), objects, key, family, max(wanted, 1))
    devices = count_devices([to_request(request) for request in list_requests(pod, list_vendors(()))]) if pod else 0
    return UnmadeWorkload(
        diagnosis.obstacle,
        parse_moment(get_text(objects.find(key.kind, key.name, key.namespace), "metadata", "creationTimestamp")),
        _find_queue(objects, family),
        wanted,
        devices * max(wanted, 1),
    )


def _find_queue(objects: CaseObjects, family: Iterable[CaseWorkload]) -> str:
    """Find the queue that a label or the spec of a member names."""
    entries = [objects.find(other.kind, other.name, other.namespace) for other in family]
    labeled = (get_text(entry, "metadata", "labels", QUEUE_LABEL) for entry in entries)
    specified = (get_text(entry, "spec", name) for entry in entries for name in ("queueName", "queue"))
    return next((queue for queue in (*labeled, *specified) if queue), "")


def count_pods(objects: CaseObjects, key: CaseWorkload, family: Sequence[CaseWorkload]) -> int | None:
    """Count the pods that are wanted, by Kueue's Workload where the kind itself does not say."""
    counting = (key, *(entry for entry in family if entry.kind == KUEUE_WORKLOAD))
    return next((count for entry in counting if (count := count_wanted(objects, entry, family)) is not None), None)


def build_unmade_facts(objects: CaseObjects, now: datetime, key: CaseWorkload, pod: Fields | None) -> DiagnosisFacts:
    """Build the facts about a pod that its workload has not made; ``pod`` is made from its template."""
    table = {**objects.tables.get(kinds.POD, {}), **({(key.namespace, key.name): pod} if pod else {})}
    added = replace(objects, tables={**objects.tables, kinds.POD: table})
    return CaseFacts(added, now).build(key.namespace, key.name)


def diagnose_unmade(
    facts: DiagnosisFacts,
    objects: CaseObjects,
    key: CaseWorkload,
    family: Sequence[CaseWorkload],
    count: int,
    pods: Sequence[Fields] = (),
) -> Diagnosis:
    """Diagnose pods that do not exist: by the layers that hold the workload, or by what kept its owner from it.

    ``facts`` are those of ``build_unmade_facts``; ``pods``: those of the workload that exist.
    """
    return (
        _diagnose_owner(facts, objects, family)
        or _diagnose_layers(facts)
        or diagnose_cause(facts, find_cause(objects, family, pods, facts.now))
        or _diagnose_silence(facts, objects, key, family, count, has_pods=bool(pods))
    )


def _diagnose_owner(facts: DiagnosisFacts, objects: CaseObjects, family: Sequence[CaseWorkload]) -> Diagnosis | None:
    """Diagnose by the words with which the API server, a quota or a webhook refused the pod."""
    problem = find_owner_problem(objects, family)
    if problem is None:
        return None
    # Somebody's copy of the workload may lack its template.
    pod = facts.pod._replace(is_gone=True) if facts.pod else PodOnCluster(problem.source, is_gone=True)
    return diagnose(replace(facts, pod=pod, owner_problem=problem, is_latest=True))


def find_owner_problem(objects: CaseObjects, family: Iterable[CaseWorkload]) -> OwnerProblem | None:
    """Find the latest words about pods that an object of the family could not make: of its events, or conditions."""
    problems = [problem for key in family for problem in _iterate_problems(objects, key)]
    return max(problems, key=lambda problem: problem.problem.at, default=None)


def _iterate_problems(objects: CaseObjects, key: CaseWorkload) -> Iterator[OwnerProblem]:
    kind = key.kind.partition(".")[0]
    texts = [
        (event.reason, event.note, event.time, event.reporter)
        for event in objects.select_events(kind, key.name, key.namespace)
        if event.reason in REFUSALS
    ]
    texts += [
        (entry.reason, entry.message, entry.last_transition_at, "")
        for entry in list_conditions(objects.find(key.kind, key.name, key.namespace) or {})
        if entry.type == "ReplicaFailure" and entry.status == "True"
    ]
    for reason, note, time, reporter in texts:
        if time is not None:
            message = extract_refusal(note)
            source = Evidence("event", f"{key.namespace}/{key}", time, reporter, words=message)
            problem = ObjectProblem(reason=reason, message=message, at=time, reported_by=reporter)
            yield OwnerProblem(str(key), problem, source)


def _diagnose_layers(facts: DiagnosisFacts) -> Diagnosis | None:
    """Diagnose by the layers above the nodes; None if none of them holds the workload."""
    diagnosis = diagnose(facts)
    holds = any(step.step in _ABOVE_NODES and step.answer == "no" for step in diagnosis.steps)
    return diagnosis if holds else None


def _diagnose_silence(
    facts: DiagnosisFacts,
    objects: CaseObjects,
    key: CaseWorkload,
    family: Sequence[CaseWorkload],
    count: int,
    *,
    has_pods: bool,
) -> Diagnosis:
    """Diagnose a suspended workload, or one of which nothing says why its pods do not exist."""
    is_held = is_suspended(objects, family)
    if is_held and (obstacle := explain_without_workload(objects, family, facts.now)):
        return _build(facts, obstacle)
    groups = (other for other in dict.fromkeys((key, *family)) if other.kind == VOLCANO_GROUP)
    if obstacle := next((quoted for group in groups if (quoted := _quote_scheduler(objects, group, facts.now))), None):
        return _build(facts, obstacle)
    if not is_held and _is_manifest(objects, key):
        return _build(facts, FoundObstacle(_MANIFEST, _describe_request(key)))
    if not is_held and (obstacle := quote_status(objects, key)):
        return _build(facts, obstacle)
    if not (is_held or has_pods or _shows_no_pods(objects, key)):
        return _build(facts, FoundObstacle(_NOT_READ, _describe_request(key)))
    code = "WorkloadSuspended" if is_held else NOT_MADE
    evidence = [Evidence("owner", f"{other.namespace}/{other}", facts.now) for other in family[:1]]
    words: dict[str, Word] = {"workload": str(key), "count": count}
    misplaced = find_misplaced_queue(objects, family) if is_held else {}
    clauses = ["misplaced"] if misplaced else []
    return _build(facts, FoundObstacle(code, words | misplaced, evidence=evidence, clauses=clauses))


def _describe_request(key: CaseWorkload) -> dict[str, Word]:
    """Describe what to ask the cluster for."""
    kind = key.kind.partition(".")[0].lower()
    return {"workload": str(key), "kind": kind, "namespace": key.namespace or "default"}


def _shows_no_pods(objects: CaseObjects, key: CaseWorkload) -> bool:
    """Tell whether the status of a workload was read, and counts no pod; people copy objects without it."""
    entry = objects.find(key.kind, key.name, key.namespace) or {}
    return "status" in entry and not any(get_object(entry, "status").get(name) for name in _COUNTS)


def _quote_scheduler(objects: CaseObjects, group: CaseWorkload, now: datetime) -> FoundObstacle | None:
    """Quote the scheduler's words on a group whose pods were not read; its queue's words say more than its gang's."""
    entry = objects.find(group.kind, group.name, group.namespace) or {}
    texts = [event.note for event in objects.select_events("PodGroup", group.name, group.namespace)]
    texts += [condition.message for condition in list_conditions(entry) if condition.status == "True"]
    texts.sort(key=lambda text: "tasks in gang unschedulable" in text)
    if not texts:
        return None
    message = quote("; ".join(dict.fromkeys(texts[:MAX_QUOTED])))
    queue = get_text(entry, "spec", "queue")
    words: dict[str, Word] = {
        "scheduler": "volcano",
        "group": group.name,
        "words": message,
        # A group of which only the log speaks has a queue that nobody names.
        "of_queue": write_phrase("of_queue", queue=queue) if queue else NOTHING,
    }
    running = get_object(entry, "status").get("running")
    words |= {"running": running if isinstance(running, int) else 0}
    evidence = [Evidence("owner", f"{group.namespace}/{group}", now, words=message)]
    return FoundObstacle(GROUP_NOT_PLACED, words, evidence=evidence, clauses=["running"] if running else [])


def quote_status(objects: CaseObjects, key: CaseWorkload) -> FoundObstacle | None:
    """Quote what a workload's own status says about it, such as the lock for which a Workflow waits."""
    entry = objects.find(key.kind, key.name, key.namespace)
    messages = (get_text(entry, "status", *path) for path in (("message",), ("applicationState", "errorMessage")))
    message = next(filter(None, messages), "")
    if not message:
        return None
    words: dict[str, Word] = {"workload": str(key), "words": quote(message), "state": get_state(entry)}
    created_at = parse_moment(get_text(entry, "metadata", "creationTimestamp"))
    evidence = [Evidence("owner", f"{key.namespace}/{key}", created_at, words=message)]
    return FoundObstacle("WorkloadSays", words, evidence=evidence, clauses=["state"] if words["state"] else [])


def _is_manifest(objects: CaseObjects, key: CaseWorkload) -> bool:
    """Tell whether no API server has stored the workload: it gives every object a UID and a time."""
    entry = objects.find(key.kind, key.name, key.namespace)
    is_stored = get_text(entry, "metadata", "uid") or get_text(entry, "metadata", "creationTimestamp")
    return entry is not None and not is_stored and not entry.get("status")


def diagnose_cause(facts: DiagnosisFacts, obstacle: FoundObstacle | None) -> Diagnosis | None:
    """Diagnose by what the objects of the workload say themselves; None if they say nothing."""
    return _build(facts, obstacle) if obstacle else None


def _build(facts: DiagnosisFacts, obstacle: FoundObstacle) -> Diagnosis:
    return build_diagnosis(facts, [TreeStep("PodExists", "no", obstacle.evidence, (), [obstacle], is_end=True)])
