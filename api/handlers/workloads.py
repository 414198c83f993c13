"""Handler of diagnoses of workloads: reads the objects around one, and groups its pods by what keeps them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Annotated, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.answers.fact_collector import CollectedFacts, FactCollector
from api.answers.pod_case import build_objects
from api.answers.workload_case import find_workload
from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.fact_redaction import hide_in_objects, hide_others
from api.handlers.redaction import redact_attempt
from api.http.cluster import Cluster
from api.http.errors import ObjectsNotReadError, to_json_response
from api.http.param_types import NamespaceInPath, ObjectName
from api.http.query_params import NoQuery, refuse_repeated
from api.index.attempts.attempt_queries import PodName
from engine.cases import workloads
from engine.cases.pod_facts import CaseFacts
from engine.cases.unmade_answers import build_unmade_facts
from engine.cases.workload_answers import MAX_DIAGNOSED, diagnose_workload, name_pod
from engine.cases.workloads import CaseWorkload
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import CaseObjects
from engine.summaries.named_pods import hide_other_pods
from runtime.kubernetes.object_fields import Fields, get_text
from schemas.answers.diagnosis import Diagnosis
from schemas.answers.workloads import WorkloadDiagnosis
from schemas.events import AttemptSummarized

_ASK_YOURSELF: Final = (
    "Where you have a kubeconfig of that cluster, `schedulerlog why` without --api-url reads its objects itself."
)
WordInPath = Annotated[
    ObjectName,
    Field(description="Word that names the kind, as `job`, `deployment`, `vcjob`, `workload`.", examples=["job"]),
]
WorkloadInPath = Annotated[ObjectName, Field(description="The workload's name.", examples=["train"])]


@dataclass(frozen=True)
class VisibleWorkload:
    """The objects around a workload at a time, and what the caller may know of them."""

    key: CaseWorkload
    cluster: str
    cluster_objects: CaseObjects
    """Objects of all namespaces, on which pods are judged."""
    now: datetime
    attempts: Mapping[str, AttemptSummarized]
    """Latest attempts by pod (``namespace/name``), as the caller may read them."""
    hides_others: bool
    """True if the caller may not know the pods of other namespaces."""

    @cached_property
    def objects(self) -> CaseObjects:
        if not self.hides_others:
            return self.cluster_objects
        hide = partial(hide_other_pods, namespace=self.key.namespace)
        return hide_in_objects(self.cluster_objects, self.key.namespace, hide)

    @cached_property
    def _facts(self) -> CaseFacts:
        return CaseFacts(self.cluster_objects, self.now)

    def diagnose(self, names: Sequence[str]) -> list[Diagnosis]:
        return [self._diagnose_pod(*name.split("/", 1)) for name in names]

    def _diagnose_pod(self, namespace: str, name: str) -> Diagnosis:
        facts = self._facts.build(namespace, name, self.attempts.get(f"{namespace}/{name}"))
        collected = self._restrict(CollectedFacts(facts, self._facts.judge(namespace, name)))
        return diagnose(collected.facts, judged=collected.judged)

    def build_unmade_facts(self, key: CaseWorkload, pod: Fields | None) -> DiagnosisFacts:
        return self._restrict(CollectedFacts(build_unmade_facts(self.cluster_objects, self.now, key, pod))).facts

    def collect_attempts(self, names: Iterable[str]) -> dict[str, AttemptSummarized]:
        return {name: self.attempts[name] for name in names if name in self.attempts}

    def _restrict(self, collected: CollectedFacts) -> CollectedFacts:
        collected = collected._replace(facts=replace(collected.facts, cluster=self.cluster))
        return hide_others(collected) if self.hides_others else collected


@dataclass(frozen=True, slots=True)
class WorkloadHandlers:
    attempts: AttemptLookup
    facts: FactCollector
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock of the judging, which takes a second of CPU in a large cluster."""

    async def get_workload(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        word: WordInPath,
        name: WorkloadInPath,
        _: NoQuery,
    ) -> Response:
        """Diagnose a workload (Job, Deployment, Volcano's Job, Workload, PodGroup, …): its pods by what keeps them.

        A workload without pods is answered too. The answer stands on the objects of the API's own cluster and on the
        attempts in its memory; it needs the right to list the pods of the namespace.
        """
        refuse_repeated(request)
        access = get_access(request)
        await access.require(cluster, list_pods(namespace))
        self._require_objects(cluster)
        sees_others = await access.allows(cluster, list_pods())
        key, read = await find_workload(self.facts.lists, namespace, word, name, sees_others=sees_others)
        objects = build_objects(read)
        attempts = await self._collect_attempts(request, cluster, objects, key)
        workload = VisibleWorkload(key, cluster.name, objects, datetime.now(UTC), attempts, not sees_others)
        async with self.lock:
            answer: WorkloadDiagnosis = await asyncio.to_thread(diagnose_workload, workload, key)
        named = answer.model_copy(update={"cluster": cluster.name})
        return to_json_response(200, named, {"Cache-Control": "no-store"})

    def _require_objects(self, cluster: Cluster) -> None:
        if cluster.name != self.facts.home_cluster:
            raise ObjectsNotReadError(
                f"workloads are answered from objects, and this API reads only those of {self.facts.home_cluster}",
                _ASK_YOURSELF,
            )
        if not self.facts.objects.is_connected:
            raise ObjectsNotReadError("the API has no connection to the cluster's objects", _ASK_YOURSELF)

    async def _collect_attempts(
        self, request: Request, cluster: Cluster, objects: CaseObjects, key: CaseWorkload
    ) -> dict[str, AttemptSummarized]:
        """Collect the latest attempts of the workload's pods that are in memory."""
        pods = workloads.list_pods(objects, key, workloads.list_family(objects, key))
        attempts = {}
        for pod in pods[:MAX_DIAGNOSED]:
            name = name_pod(pod)
            cached = self.attempts.find_current_in_memory(PodName(cluster.name, *name.split("/", 1)))
            # An earlier pod may have had the name.
            if cached and (summary := cached.read_summary()).pod.uid in ("", get_text(pod, "metadata", "uid")):
                attempts[name] = await redact_attempt(get_access(request), cluster, summary)
        return attempts
