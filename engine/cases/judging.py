"""A waiting pod judged on the nodes of a case: kube-scheduler's filters, then HAMi's fit where HAMi places the pod."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from engine.diagnosis.attempt_steps import answer_attempt_questions
from engine.diagnosis.facts import DiagnosisFacts, JudgedGang
from engine.diagnosis.outcome import FoundObstacle, JudgedPod
from engine.diagnosis.tree import rank_obstacles
from engine.diagnosis.wording import cut_first_line
from engine.filters import node_affinity
from engine.filters.verdicts import Unjudged
from engine.fit import device_config
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import Manifest, derive_uid
from engine.hami.releases import LATEST, observe_release
from engine.simulation.admission import FOREIGN_SCHEDULERS, AdmittedPod
from engine.simulation.answer import build_suggestions_of_verdict
from engine.simulation.cluster import SimulationCluster, build_cluster
from engine.simulation.ignored_words import find_excluding_reason
from engine.simulation.pod_placer import placing_pods
from engine.simulation.proved_changes import find_changes
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import describe_ignored
from engine.simulation.verdict import PodOutcome, PodRejectedError, PodVerdict, judge_admitted, serves
from engine.simulation.workloads import PodTemplate, select_owners
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from engine.summaries.answer import encode_schedulerlog
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.answers.attempts import ContainerLog, NodeLog
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.suggestions import Suggestions
from schemas.events import DEFAULT_CLUSTER

_DEFAULT_SCHEDULER: Final = "default-scheduler"
_POLICY: Final = SchedulingPolicy()
MAX_VERDICTS: Final = 100_000
"""Limit of the verdicts on nodes for the members of one gang."""


class PodOwner(NamedTuple):
    """An object that made a pod, by itself or by another one."""

    kind: str
    name: str
    annotations: Mapping[str, Any]


class CaseJudge:
    """Judges pods on the objects of one case."""

    def __init__(self, cluster: SimulationCluster, now: datetime, unread: frozenset[str]) -> None:
        self._cluster, self._now, self._unread = cluster, now, unread
        self._judged: tuple[Mapping[str, Any], PodVerdict | None] | None = None

    def with_objects(self, objects: Iterable[Mapping[str, Any]]) -> "CaseJudge":
        """Return a judge that knows more objects, such as the claims of one namespace."""
        added = [dict(entry) for entry in objects]
        return CaseJudge(self._cluster.with_objects(added), self._now, self._unread) if added else self

    def judge(self, pod: Mapping[str, Any]) -> JudgedPod | None:
        """Judge a pod without a node; None for a malformed one, which no API server stores."""
        verdict = self._judge(pod)
        return self._to_judged(verdict) if verdict else None

    def suggest(self, pod: Mapping[str, Any], cluster: str) -> Suggestions | None:
        """Suggest changes after which a refused pod fits, each proved by judging it again; None for any other."""
        verdict = self._judge(pod)
        if verdict is None or verdict.outcome is not PodOutcome.REFUSED:
            return None
        changes = find_changes(self._cluster, verdict, SimulationSetting(self._now))
        return build_suggestions_of_verdict(verdict, changes, cluster, self._now)

    def judge_gang(self, members: Sequence[Mapping[str, Any]]) -> JudgedGang | None:
        """Judge pods that start together one after the other.

        None if all of them fit, or if it stays open: one can't be judged, or there are too many to judge all of them.
        """
        limit = MAX_VERDICTS // max(1, self._cluster.node_count)
        with placing_pods(self._cluster) as placer:
            for fitting, pod in enumerate(members[:limit]):
                verdict = self._compute(placer.cluster, pod)
                if verdict is None or not self._is_certain(verdict):
                    return None
                if verdict.outcome is PodOutcome.FITS:
                    placer.bind(verdict)
                    continue
                ranked = rank_obstacles(self._to_judged(verdict).obstacles)
                if not ranked:
                    return None
                return JudgedGang(len(members), fitting, get_text(pod, "metadata", "name"), ranked[0])
        return None

    def _is_certain(self, verdict: PodVerdict) -> bool:
        return verdict.outcome is not PodOutcome.OPEN and not self._unread & {kinds.NODE, kinds.POD}

    def _to_judged(self, verdict: PodVerdict) -> JudgedPod:
        return JudgedPod(
            obstacles=(*verdict.obstacles, *self._list_device_obstacles(verdict)),
            fitting=verdict.fitting,
            total=verdict.total,
            counts=verdict.judgement.counts if verdict.judgement else {},
            is_certain=self._is_certain(verdict),
            unread=frozenset(kind for cause in _list_open(verdict) for kind in cause.kinds),
            causes=list(dict.fromkeys(cause.cause for cause in _list_open(verdict) if cause.cause)),
        )

    def list_nodes(self, pod: Mapping[str, Any]) -> list[NodeLog]:
        """List the verdict on each node by its name; empty for a pod that is refused before any node is looked at."""
        verdict = self._judge(pod)
        if verdict is None or verdict.judgement is None:
            return []
        judgement, attempt = verdict.judgement, verdict.attempt
        rows = {name: "; ".join(map(cut_first_line, refusal.reasons)) for name, refusal in judgement.refused.items()}
        rows |= {name: f"{rows[name]}: {words}" for name, words in verdict.details.items()}
        rows |= dict.fromkeys(judgement.outside, node_affinity.REASON)
        logs = {name: _to_refused(name, reason) for name, reason in rows.items()}
        if attempt:
            listed = orjson.loads(encode_schedulerlog(attempt))["filter"]["nodes"]
            logs |= {log["name"]: NodeLog.model_validate(log) for log in listed}
        # A node whose verdict is open neither takes the pod nor refuses it: pods that were not read may hold what it
        # has.
        is_open = bool(judgement.unjudged or self._unread & {kinds.NODE, kinds.POD})
        fitting = () if is_open else set(verdict.fitting) - judgement.undecided.keys()
        passing = [name for name in fitting if name not in logs]
        logs |= {name: NodeLog(name=name, status="passed", score=0, containers=[]) for name in passing}
        return [logs[name] for name in sorted(logs)]

    def list_notes(self, pod: Mapping[str, Any], owner: PodOwner | None) -> list[InBothLanguages]:
        """List what the pod's owner wrote and no scheduler reads, in the pod or in the object that made it."""
        verdict = None if get_text(pod, "spec", "nodeName") else self._judge(pod)
        kind, name, annotations = owner or PodOwner("Pod", get_text(pod, "metadata", "name"), {})
        written = _complete(pod)
        written["metadata"]["annotations"] = select_owners(get_object(pod, "metadata", "annotations"))
        workload = PodTemplate(kind, name, written, 1, annotations)
        return [note.text for note in describe_ignored(self._cluster, workload, verdict.obstacles if verdict else ())]

    def _judge(self, pod: Mapping[str, Any]) -> PodVerdict | None:
        # The nodes are listed of the pod that was judged last.
        if self._judged is None or self._judged[0] is not pod:
            self._judged = pod, self._compute(self._cluster, pod)
        return self._judged[1]

    def _compute(self, cluster: SimulationCluster, pod: Mapping[str, Any]) -> PodVerdict | None:
        if not get_text(pod, "metadata", "name"):
            return None
        scheduler = get_text(pod, "spec", "schedulerName")
        is_hamis = serves(cluster, pod) and scheduler not in (*FOREIGN_SCHEDULERS, "", _DEFAULT_SCHEDULER)
        admitted = AdmittedPod(_complete(pod), (), is_hamis=is_hamis)
        try:
            return judge_admitted(cluster, admitted, Identity(DEFAULT_CLUSTER, scheduler), _POLICY, self._now)
        except PodRejectedError:
            return None

    def _list_device_obstacles(self, verdict: PodVerdict) -> list[FoundObstacle]:
        """List the reasons of HAMi's fit on the nodes that pass the filters."""
        attempt = verdict.attempt
        if attempt is None or attempt.chosen:
            return []
        names = attempt.pod.namespace, attempt.pod.name
        reason = find_excluding_reason(verdict.pod, self._cluster.vendors, self._cluster.columns)
        # Words about devices of another vendor than the pod asks for exclude nothing.
        if not any(reason in refusal.counts for refusal in attempt.refusals):
            reason = ""
        facts = DiagnosisFacts(DEFAULT_CLUSTER, *names, self._now, attempt, is_latest=False, excluded_by=reason)
        steps = answer_attempt_questions(facts, attempt, {})
        return [obstacle._replace(evidence=()) for step in steps for obstacle in step.obstacles]


def _list_open(verdict: PodVerdict) -> list[Unjudged]:
    """List the verdicts of filters that the objects of the case leave open."""
    judgement = verdict.judgement
    if judgement is None:
        return []
    return [*judgement.unjudged, *(unjudged for of_node in judgement.undecided.values() for unjudged in of_node)]


def build_case_judge(objects: CaseObjects, now: datetime) -> CaseJudge | None:
    """Build the judge of a case; None if no node was read."""
    if not objects.has_read(kinds.NODE):
        return None
    return CaseJudge(objects.derive(build_case_cluster), now, objects.unread)


def build_case_cluster(objects: CaseObjects) -> SimulationCluster:
    """Build the simulated cluster of a case, as the release of HAMi that runs there reads it."""
    manifest = build_manifest(objects)
    release = objects.hami_release or observe_release(manifest.pods.values()) or LATEST
    return build_cluster(manifest, device_config.read_shipped(release), release, objects.listed)


def build_manifest(objects: CaseObjects) -> Manifest:
    """Build the description of the case's cluster for a simulation."""
    nodes = {get_text(node, "metadata", "name"): dict(node) for node in objects.select(kinds.NODE)}
    pods = {key: _complete(objects.tables[kinds.POD][key]) for key in objects.tables.get(kinds.POD, {})}
    quotas = {key: dict(quota) for key, quota in objects.tables.get(kinds.RESOURCE_QUOTA, {}).items()}
    manifest_kinds = (kinds.NODE, kinds.POD, kinds.RESOURCE_QUOTA)
    others = [
        dict(entry) for kind, table in objects.tables.items() if kind not in manifest_kinds for entry in table.values()
    ]
    return Manifest(nodes, pods, quotas, others)


def _to_refused(name: str, reason: str) -> NodeLog:
    """Convert the reasons of a filter, which refuses the pod as a whole: they have no container's name."""
    return NodeLog(
        name=name, status="failed", score=0, containers=[ContainerLog(name="", status="failed", reason=reason)]
    )


def _complete(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Complete a pod with the namespace and UID that copies of objects leave out."""
    metadata = dict(get_object(pod, "metadata"))
    metadata["namespace"] = get_text(metadata, "namespace") or "default"
    metadata["uid"] = get_text(metadata, "uid") or derive_uid(metadata["namespace"], get_text(metadata, "name"))
    return {**pod, "metadata": metadata}
