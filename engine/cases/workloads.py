"""Workloads of a case: what makes pods (Job, Deployment, Volcano's Job, …) or holds them back (Workload, PodGroup).

A workload is found by the word that people write (``job/train``); with it come the objects that it makes, and the pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from engine.cases.workload_words import (
    CRON_JOB,
    DEPLOYMENT,
    GROUPS,
    HOLDERS,
    JOB,
    KUEUE_WORKLOAD,
    REPLICA_SET,
    VOLCANO_GROUP,
    WORDS,
    parse_word,
)
from engine.diagnosis.layers.group_members import list_members
from engine.snapshot import kinds
from engine.snapshot.case_objects import EVENT_KINDS, CaseObjects
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions

_ENDED: Final = ("Succeeded", "Failed")
_MAX_OWNERS: Final = 16
_REPLICATED: Final = (DEPLOYMENT, REPLICA_SET, "StatefulSet.apps")
"""Kinds whose replicas are pods."""
_ENDS: Final = ("Complete", "Completed", "Succeeded", "Failed")
"""Conditions of workloads that have ended, in the words of their kinds."""
_STATES: Final = (("phase",), ("applicationState", "state"), ("jobDeploymentStatus",), ("state",))
"""Fields of a status that hold a state: of Argo and CodeFlare, Spark, Ray's jobs and Ray's clusters."""
_ENDED_STATES: Final = ("succeeded", "failed", "error", "completed", "complete", "submission_failed")
_RUNNING: Final = "running"
_MADE_OF_OTHERS: Final = (CRON_JOB, *HOLDERS)
"""Kinds whose pods are those of others: of the Jobs that a CronJob makes, of the Job that a Workload holds back."""


class CaseWorkload(NamedTuple):
    """Name of a workload in a case; ``kind`` as in ``engine.snapshot.kinds``."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.partition('.')[0]}/{self.name}"


def find_workloads(objects: CaseObjects, word: str, name: str, namespace: str = "") -> list[CaseWorkload]:
    """Find the workloads that a word and a name mean; without a namespace in all of them."""
    return [
        CaseWorkload(kind, space, entry)
        for kind in parse_word(word)
        for space, entry in objects.tables.get(kind, {})
        if entry == name and namespace in ("", space)
    ]


def list_without_pods(objects: CaseObjects) -> list[CaseWorkload]:
    """List the workloads that want pods and have none, each by the owner of its owners."""
    unmade: dict[CaseWorkload, None] = {}
    owners = {owner for pod in objects.select(kinds.POD) for owner in iterate_owners(objects, pod)}
    for kind in dict.fromkeys(kind for listed in WORDS.values() for kind in listed):
        for (namespace, name), entry in objects.tables.get(kind, {}).items() if kind not in _MADE_OF_OTHERS else ():
            key = CaseWorkload(kind, namespace, name)
            line = (key, *iterate_owners(objects, entry))
            if _wants_pods(objects, key, entry) and not counts_pods(entry) and owners.isdisjoint(line):
                unmade[line[-1]] = None
    return list(unmade)


def list_holders(objects: CaseObjects) -> list[CaseWorkload]:
    """List the Workloads and pod groups that wait, of which neither the pods nor their maker were read."""
    return [
        CaseWorkload(kind, namespace, name)
        for kind in (KUEUE_WORKLOAD, VOLCANO_GROUP)
        for (namespace, name), entry in objects.tables.get(kind, {}).items()
        if not objects.select(kinds.POD, namespace) and _waits(entry)
    ]


def _waits(holder: Fields) -> bool:
    states = {condition.type: condition.status for condition in list_conditions(holder)}
    if states.get("Finished") == "True":
        return False
    # Kueue may leave the condition Admitted of a Workload that it has taken back.
    if states.get("Evicted") == "True" and states.get("Requeued") != "True":
        return True
    checks = iterate_objects(holder, "status", "admissionChecks")
    is_held = "False" in states.values() or states.get("Unschedulable") == "True"
    is_held = is_held or any(get_text(check, "state") not in ("", "Ready") for check in checks)
    return states.get("Admitted") != "True" and (is_held or get_text(holder, "status", "phase") == "Pending")


def _wants_pods(objects: CaseObjects, key: CaseWorkload, entry: Fields) -> bool:
    """Tell whether a workload wants pods, also one whose kind has its own place for templates, and has not ended."""
    wanted = count_wanted(objects, key, ())
    if wanted is not None:
        return wanted > 0
    # One that runs may have no pods between two of its steps.
    is_idle = get_object(entry, "spec").get("replicas") == 0 or get_state(entry).lower() == _RUNNING
    return not is_idle and not is_over(entry)


def get_state(entry: Fields | None) -> str:
    """Get the word in which a workload's own status says where it stands; empty for kinds that have conditions only."""
    return next((state for path in _STATES if (state := get_text(entry, "status", *path))), "")


def is_over(entry: Fields | None) -> bool:
    """Tell whether a workload says that it has ended."""
    return get_state(entry).lower() in _ENDED_STATES or any(
        get_text(condition, "type") in _ENDS and get_text(condition, "status") == "True"
        for condition in iterate_objects(entry, "status", "conditions")
    )


def counts_pods(entry: Fields) -> bool:
    """Tell whether a workload's own status counts pods, which were not read then."""
    status = get_object(entry, "status")
    return any(_get_number(status, name, 0) for name in ("active", "replicas", "running", "pending"))


def find_root(objects: CaseObjects, key: CaseWorkload) -> CaseWorkload:
    """Find the owner of the owners of an object; the object itself where nothing owns it."""
    entry = objects.find(key.kind, key.name, key.namespace) or {}
    return (key, *iterate_owners(objects, entry))[-1]


def iterate_owners(objects: CaseObjects, entry: Fields) -> Iterator[CaseWorkload]:
    """Iterate over the owners of an object, from its own to the owner of the others."""
    for _ in range(_MAX_OWNERS):
        owner = next(iter(list_owners(entry, get_text(entry, "metadata", "namespace"))), None)
        if owner is None:
            return
        yield owner
        entry = objects.find(owner.kind, owner.name, owner.namespace) or {}


def list_family(objects: CaseObjects, key: CaseWorkload) -> list[CaseWorkload]:
    """List the workload, the one that it belongs to, and everything that was made for it; pods are not among them."""
    children = objects.derive(_group_by_owner)
    family = dict.fromkeys(_list_roots(objects, key))
    members = list(family)
    for _ in range(_MAX_OWNERS):
        members = [child for member in members for child in children.get(member, ()) if child not in family]
        if not members:
            break
        family |= dict.fromkeys(members)
    return list(family)


def _group_by_owner(objects: CaseObjects) -> dict[CaseWorkload, list[CaseWorkload]]:
    """Group the objects by their owners; pods and events are left out."""
    children: dict[CaseWorkload, list[CaseWorkload]] = {}
    for kind, table in objects.tables.items():
        if kind in (kinds.POD, *EVENT_KINDS):
            continue
        for (namespace, name), entry in table.items():
            for owner in list_owners(entry, namespace):
                children.setdefault(owner, []).append(CaseWorkload(kind, namespace, name))
    return children


def _list_roots(objects: CaseObjects, key: CaseWorkload) -> Iterator[CaseWorkload]:
    """List the workload, after the one that makes the pods which it holds back: a Workload belongs to its Job."""
    entry = objects.find(key.kind, key.name, key.namespace)
    if key.kind in HOLDERS:
        for owner in list_owners(entry, key.namespace):
            if objects.find(owner.kind, owner.name, owner.namespace) and owner.kind != kinds.POD:
                yield owner
    yield key


def list_owners(entry: Fields | None, namespace: str) -> list[CaseWorkload]:
    """List the owners of an object, the controller first."""
    owners = sorted(
        iterate_objects(entry, "metadata", "ownerReferences"), key=lambda owner: owner.get("controller") is not True
    )
    return [
        CaseWorkload(kinds.identify(get_text(owner, "apiVersion"), get_text(owner, "kind")), namespace,
                    get_text(owner, "name"))
        for owner in owners
    ]  # fmt: skip


def _is_owned(objects: CaseObjects, pod: Fields, family: set[CaseWorkload]) -> bool:
    """Tell whether the family owns a pod, also through another pod: that of Spark's driver, or of a group's leader."""
    owners = list_owners(pod, get_text(pod, "metadata", "namespace"))
    return not family.isdisjoint(owners) or not family.isdisjoint(iterate_owners(objects, pod))


def list_pods(objects: CaseObjects, key: CaseWorkload, family: Iterable[CaseWorkload]) -> list[Fields]:
    """List the pods of a workload, in the order of their names."""
    if key.kind in GROUPS and (members := list_members(objects, key.kind, key.namespace, key.name)):
        return sorted(members, key=_get_name)
    family = set(family)
    selector = _get_selector(objects, key)
    pods = objects.select(kinds.POD, key.namespace)
    holding = _list_held_pods(objects, key)
    chosen = [
        pod
        for pod in pods
        if _is_owned(objects, pod, family) or _get_name(pod) in holding or _is_selected(pod, selector)
    ]
    return sorted(chosen, key=_get_name)


def _get_name(entry: Fields) -> str:
    return get_text(entry, "metadata", "name")


def _list_held_pods(objects: CaseObjects, key: CaseWorkload) -> set[str]:
    """List the pods that own a Workload of Kueue: it was made for them."""
    entry = objects.find(key.kind, key.name, key.namespace)
    return {owner.name for owner in list_owners(entry, key.namespace) if owner.kind == kinds.POD}


def _get_selector(objects: CaseObjects, key: CaseWorkload) -> Fields:
    """Get the labels by which a Deployment finds its pods where the ReplicaSets between them were not read."""
    if key.kind != DEPLOYMENT or objects.tables.get(REPLICA_SET):
        return {}
    return get_object(objects.find(key.kind, key.name, key.namespace), "spec", "selector", "matchLabels")


def _is_selected(pod: Fields, selector: Fields) -> bool:
    labels = get_object(pod, "metadata", "labels")
    return bool(selector) and all(labels.get(name) == value for name, value in selector.items())


def count_wanted(objects: CaseObjects, key: CaseWorkload, family: Iterable[CaseWorkload]) -> int | None:
    """Count the pods that a workload wants at the same time; None where its kind does not say."""
    entry = objects.find(key.kind, key.name, key.namespace)
    spec = get_object(entry, "spec")
    match key.kind:
        case "Job.batch":
            return _count_of_job(entry)
        case "CronJob.batch":
            jobs = [objects.find(other.kind, other.name, other.namespace) for other in family if other.kind == JOB]
            return sum(_count_of_job(job) for job in jobs)
        case "Job.batch.volcano.sh":
            return sum(_get_number(task, "replicas", 1) for task in iterate_objects(spec, "tasks")) or None
        case "Workload.kueue.x-k8s.io":
            # Without the spec, which people cut off a description, nothing names the number.
            return sum(_get_number(pods, "count", 1) for pods in iterate_objects(spec, "podSets")) or None
        case kind if kind in GROUPS:
            gang = get_object(spec, "schedulingPolicy", "gang")
            return _get_number(spec, "minMember", _get_number(gang, "minCount", 0)) or None
    # Elsewhere replicas may be those of groups.
    counts_pods = spec.get("template") or ("replicas" in spec and key.kind in _REPLICATED)
    return _get_number(spec, "replicas", 1) if counts_pods and key.kind != "DaemonSet.apps" else None


def _count_of_job(job: Fields | None) -> int:
    spec, status = get_object(job, "spec"), get_object(job, "status")
    parallel = _get_number(spec, "parallelism", 1)
    if any(
        get_text(entry, "type") in ("Complete", "Failed") and get_text(entry, "status") == "True"
        for entry in iterate_objects(status, "conditions")
    ):
        return 0
    remaining = _get_number(spec, "completions", parallel) - _get_number(status, "succeeded", 0)
    return max(min(parallel, remaining), 0)


def _get_number(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def is_suspended(objects: CaseObjects, family: Iterable[CaseWorkload]) -> bool:
    """Tell whether something of the workload is suspended: its controller makes no pods."""
    specs = [get_object(objects.find(key.kind, key.name, key.namespace), "spec") for key in family]
    return any(spec.get("suspend") is True or get_object(spec, "runPolicy").get("suspend") is True for spec in specs)


def has_ended(pod: Fields) -> bool:
    """Tell whether a pod needs no node any more."""
    return get_text(pod, "status", "phase") in _ENDED or bool(get_text(pod, "metadata", "deletionTimestamp"))


def is_refused(pod: Fields) -> bool:
    """Tell whether the pod's node has refused or evicted it: it failed without a container that ran to its end."""
    status = get_object(pod, "status")
    return get_text(status, "phase") == "Failed" and bool(get_text(status, "reason"))
