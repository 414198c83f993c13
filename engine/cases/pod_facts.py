"""Facts about pods for the diagnosis, from the objects of a cluster and the records of its schedulers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Final

from engine.cases.held_devices import list_held_devices
from engine.cases.judging import CaseJudge, PodOwner, build_case_judge
from engine.cases.workloads import iterate_owners
from engine.diagnosis import objects as conversion
from engine.diagnosis.facts import (
    Claim,
    DiagnosisFacts,
    Evidence,
    JudgedGang,
    NodeFacts,
    OwnerProblem,
    PodOnCluster,
    Quota,
    Unknown,
)
from engine.diagnosis.layers.group_members import Group, find_group_of_pod
from engine.diagnosis.layers.pod_makers import REFUSALS
from engine.diagnosis.outcome import JudgedPod
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects, ObjectEvent, list_claim_names
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from runtime.kubernetes.resources import EVENTS, NODES, PODS, QUOTAS, Key, Resource
from schemas.answers.attempts import DeviceLog, NodeLog
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import DEFAULT_CLUSTER, AttemptSummarized, ObjectProblem

CLAIMS: Final = Resource("/api/v1", "persistentvolumeclaims")
_STARTERS: Final = ("kubelet", "attachdetach-controller")
"""Reporters of what keeps a pod with a node from its start."""
_ENDED: Final = ("Succeeded", "Failed")


class CaseFacts:
    """Facts about the pods of one cluster at ``now``, the time of its objects."""

    def __init__(self, cluster: CaseObjects, now: datetime, *, has_gangs: bool = True) -> None:
        """Build facts of a cluster. ``has_gangs``: whether the members of a pod's gang are judged together."""
        self._cluster, self._now, self._has_gangs = cluster, now, has_gangs
        self._gangs: dict[tuple[str, str, str], JudgedGang | None] = {}

    @cached_property
    def _judge(self) -> CaseJudge | None:
        return build_case_judge(self._cluster, self._now)

    @cached_property
    def _nodes(self) -> list[NodeFacts] | None:
        # Copies of objects may be cut; a node without a name is none that a pod could be on.
        nodes = [node for node in self._cluster.select(kinds.NODE) if get_text(node, "metadata", "name")]
        if not nodes:
            return None
        return [
            conversion.to_node_facts(
                node, NODES.build_object_path(Key("", get_text(node, "metadata", "name"))), self._now
            )
            for node in nodes
        ]

    def build(
        self,
        namespace: str,
        name: str,
        attempt: AttemptSummarized | None = None,
        devices: Sequence[DeviceLog] | None = None,
    ) -> DiagnosisFacts:
        """Build the facts about a pod; ``attempt`` is the latest recorded one, with its ``devices``."""
        pod = self._cluster.find(kinds.POD, name, namespace)
        facts = DiagnosisFacts(
            DEFAULT_CLUSTER, namespace, name, self._now, attempt, devices=devices, objects=self._cluster
        )
        if pod is None:
            # Only its records are available, as for an attempt that later ones followed.
            events = self._cluster.select_events("Pod", name, namespace)
            path = EVENTS.build_collection_path(namespace)
            return replace(facts, is_latest=False, events=[to_event_evidence(event, path) for event in events])
        collector = _FactCollector(self._cluster, pod, namespace, name, self._now)
        refusal = collector.find_refusal()
        return replace(
            facts,
            pod=collector.build_pod()._replace(is_gone=bool(refusal)),
            owner_problem=refusal,
            gang=self._judge_gang(pod, namespace),
            claims=collector.collect_claims(),
            quotas=collector.collect_quotas(),
            events=collector.collect_events(),
            nodes=self._nodes,
            unknown=collector.list_unknown(attempt),
        )

    def judge(self, namespace: str, name: str) -> JudgedPod | None:
        """Judge a pod on the nodes of the case; None if it has a node, has ended, or no node was read."""
        pod = self._find_waiting(namespace, name)
        return self._judge.judge(pod) if pod and self._judge else None

    def list_nodes(self, namespace: str, name: str) -> list[NodeLog]:
        """List the verdicts on the nodes; none for a pod that is not judged."""
        pod = self._find_waiting(namespace, name)
        return self._judge.list_nodes(pod) if pod and self._judge else []

    def list_notes(self, namespace: str, name: str) -> list[InBothLanguages]:
        """List what the pod's owner wrote and no scheduler reads; none where no node was read."""
        pod = self._cluster.find(kinds.POD, name, namespace)
        if pod is None or self._judge is None or next(iterate_objects(pod, "spec", "containers"), None) is None:
            return []
        return self._judge.list_notes(pod, find_maker(self._cluster, pod))

    def _find_waiting(self, namespace: str, name: str) -> Fields | None:
        pod = self._cluster.find(kinds.POD, name, namespace)
        has_node = get_text(pod, "spec", "nodeName") or get_text(pod, "status", "phase") in _ENDED
        # A pod of which only events were read has no container: it would fit everywhere.
        is_read = next(iterate_objects(pod, "spec", "containers"), None) is not None
        return pod if is_read and not has_node else None

    def _judge_gang(self, pod: Fields, namespace: str) -> JudgedGang | None:
        """Judge the waiting members of the pod's gang together; None for a pod without a gang or with a node."""
        group = find_group_of_pod(pod, self._cluster, namespace) if self._has_gangs else None
        if group is None or get_text(pod, "spec", "nodeName") or self._judge is None:
            return None
        key = namespace, group.system, group.name
        if key not in self._gangs:
            self._gangs[key] = judge_members(self._judge, group)
        return self._gangs[key]


def find_maker(objects: CaseObjects, pod: Fields) -> PodOwner | None:
    """Find the object of a person that made the pod, the last of its owners; None for a pod without owners."""
    keys = iterate_owners(objects, pod)
    owners = [(key, owner) for key in keys if (owner := objects.find(key.kind, key.name, key.namespace))]
    if not owners:
        return None
    # Kubernetes copies the annotations of a Deployment to its ReplicaSets: only the first owner is a person's.
    key, owner = owners[-1]
    return PodOwner(key.kind.partition(".")[0], key.name, get_object(owner, "metadata", "annotations"))


def judge_members(judge: CaseJudge, group: Group) -> JudgedGang | None:
    """Judge the members without a node; None for a gang that is not placed whatever the nodes have."""
    waiting = [member for member in group.members if not get_text(member, "spec", "nodeName")]
    needed = (group.minimum or len(group.members)) - (len(group.members) - len(waiting))
    is_tried = 1 < needed <= len(waiting) and not any(is_gated(member) for member in waiting)
    return judge.judge_gang(sort_members(waiting)[:needed]) if is_tried else None


def is_gated(pod: Fields) -> bool:
    """Tell whether the pod has a scheduling gate."""
    return next(iterate_objects(pod, "spec", "schedulingGates"), None) is not None


def sort_members(pods: Sequence[Fields]) -> list[Fields]:
    """Sort pods by name, in which indices count as numbers: ring-2 comes before ring-10."""
    names = {id(pod): get_text(pod, "metadata", "name") for pod in pods}
    return sorted(pods, key=lambda pod: (len(names[id(pod)]), names[id(pod)]))


class _FactCollector:
    """The facts of one pod."""

    def __init__(self, cluster: CaseObjects, pod: Fields, namespace: str, name: str, now: datetime) -> None:
        self._cluster, self._pod, self._now = cluster, pod, now
        self._namespace, self._name = namespace, name
        self._events = cluster.select_events("Pod", name, namespace, get_text(pod, "metadata", "uid"))

    def build_pod(self) -> PodOnCluster:
        observed = conversion.to_observed_pod(
            self._pod, PODS.build_object_path(Key(self._namespace, self._name)), self._now
        )
        problems = [problem for event in self._events if (problem := to_kubelet_problem(event))]
        # A status stays; events are gone after an hour.
        devices = list_held_devices(self._pod, self._cluster)
        return observed._replace(problems=[*observed.problems, *problems], devices=devices)

    def find_refusal(self) -> OwnerProblem | None:
        """Find the words with which the API server refused the pod itself: then only somebody's copy of them exists."""
        event = next((event for event in self._events if event.reason in REFUSALS and event.time), None)
        if event is None or event.time is None:
            return None
        problem = ObjectProblem(reason=event.reason, message=event.note, at=event.time, reported_by=event.reporter)
        source = to_event_evidence(event, EVENTS.build_collection_path(self._namespace))
        return OwnerProblem(event.reporter or "kubectl", problem, source)

    def collect_claims(self) -> list[Claim] | None:
        names = list_claim_names(self._pod)
        claims = {name: self._cluster.find(kinds.VOLUME_CLAIM, name, self._namespace) for name in names}
        if names and not self._cluster.has_read(kinds.VOLUME_CLAIM):
            return None
        return [self._to_claim(name, claim) for name, claim in claims.items()]

    def _to_claim(self, name: str, claim: Fields | None) -> Claim:
        class_name = get_text(claim, "spec", "storageClassName")
        storage_class = self._cluster.find(kinds.STORAGE_CLASS, class_name)
        return conversion.to_claim(
            name, CLAIMS.build_object_path(Key(self._namespace, name)), claim, storage_class, self._now
        )

    def collect_quotas(self) -> list[Quota] | None:
        if kinds.RESOURCE_QUOTA in self._cluster.unread:
            return None
        path = QUOTAS.build_collection_path(self._namespace)
        quotas = self._cluster.select(kinds.RESOURCE_QUOTA, self._namespace)
        return [conversion.to_quota(quota, path, self._now) for quota in quotas]

    def collect_events(self) -> list[Evidence]:
        path = EVENTS.build_collection_path(self._namespace)
        return [to_event_evidence(event, path) for event in self._events]

    def list_unknown(self, attempt: AttemptSummarized | None) -> list[Unknown]:
        """List the facts that the case does not have."""
        missing = {
            "attempt": attempt is None,
            "claims": self.collect_claims() is None,
            "nodes": not self._cluster.has_read(kinds.NODE),
            "schedulers": True,
        }
        return [Unknown(subject, "not-given") for subject, is_missing in missing.items() if is_missing]


def to_kubelet_problem(event: ObjectEvent) -> ObjectProblem | None:
    """Convert a report of a pod that its node does not start; None for other events."""
    if event.time is None or event.reporter not in _STARTERS or not event.is_warning:
        return None
    return ObjectProblem(reason=event.reason or "Failed", message=event.note, at=event.time, reported_by=event.reporter)


def to_event_evidence(event: ObjectEvent, path: str) -> Evidence:
    """Convert an event, with the number of times that it was seen."""
    words = f"{event.reason}: {event.note}"
    return Evidence("event", path, event.time, event.reporter, {"times": event.count}, words)
