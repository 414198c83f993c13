"""Facts for a diagnosis from the API server: a pod, and the claims, quotas, events and nodes that it names."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.answers.case_judges import CaseJudges
from api.answers.object_api import Objects
from api.answers.object_lists import ObjectLists
from api.answers.pod_case import EVENTS, PodCase, read_pod_case, to_unknown
from engine.cases.pod_facts import CaseFacts, to_event_evidence
from engine.diagnosis import objects
from engine.diagnosis.facts import (
    Claim,
    Evidence,
    HeldLock,
    JudgedGang,
    NodeFacts,
    OwnerProblem,
    PodOnCluster,
    Quota,
    Unknown,
)
from engine.diagnosis.judged_steps import counts_only
from engine.diagnosis.layers.group_members import has_group
from engine.diagnosis.outcome import JudgedPod
from engine.simulation.workloads import select_owners
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes import resources
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from runtime.kubernetes.resources import NODES, PODS, QUOTAS, Key
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AttemptSummarized
from schemas.json_types import Json

MAX_NODES: Final = 500


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """Facts that the API server has now; a fact that it does not give is None, with a reason in ``unknown``."""

    pod: PodOnCluster | None = None
    claims: Sequence[Claim] | None = None
    quotas: Sequence[Quota] | None = None
    events: Sequence[Evidence] | None = None
    nodes: Sequence[NodeFacts] | None = None
    """Nodes of the cluster where a verdict on them was needed."""
    owner_problem: OwnerProblem | None = None
    objects: CaseObjects | None = None
    gang: JudgedGang | None = None
    """Members of the pod's gang judged together; None as for ``judged``, and where they fit together."""
    judged: JudgedPod | None = None
    """Verdicts worked out on the objects; None where none were needed, or not all objects could be read."""
    notes: Sequence[InBothLanguages] = ()
    """Words of the pod's owner that no scheduler reads."""
    unknown: Sequence[Unknown] = ()


async def read_circumstances(
    api: Objects,
    namespace: str,
    name: str,
    now: datetime,
    lists: ObjectLists | None = None,
    judges: CaseJudges | None = None,
    attempt: AttemptSummarized | None = None,
) -> ObjectFacts:
    """Read the pod with what surrounds it, and judge it on the objects where its attempt does not say enough.

    Without ``judges`` it is not judged. ``attempt``: its latest one.
    """
    try:
        case = await read_pod_case(
            api,
            lists or ObjectLists(api),
            namespace,
            name,
            lambda pod: judges is not None and (_is_open(pod, attempt) or has_group(pod) or _has_own_words(pod)),
        )
    except KubeApiError as error:
        return ObjectFacts(unknown=[to_unknown(subject, error) for subject in ("pod", "claims", "events")])
    if case.pod is None:
        return _describe_missing(case, namespace, name, now)
    judged = await judges.judge(case, now) if judges and _is_open(case.pod, attempt) else None
    notes = await judges.list_notes(case, now) if judges else []
    gang = await judges.judge_gang(case, now) if judges else None
    facts = await asyncio.to_thread(CaseFacts(case.objects, now, has_gangs=False).build, namespace, name)
    missing = {unknown.subject for unknown in case.unknown}
    return ObjectFacts(
        pod=facts.pod,
        claims=facts.claims,
        quotas=facts.quotas,
        events=None if "events" in missing and not facts.events else facts.events,
        nodes=facts.nodes,
        objects=case.objects,
        gang=gang,
        judged=judged,
        notes=notes,
        unknown=case.unknown,
    )


def _is_open(pod: Json, attempt: AttemptSummarized | None) -> bool:
    """Tell whether no attempt of the pod has the verdicts on its nodes."""
    is_of_another = attempt is not None and attempt.pod.uid not in ("", get_text(pod, "metadata", "uid"))
    return attempt is None or is_of_another or counts_only(attempt)


def _has_own_words(pod: Json) -> bool:
    """Tell whether the pod's owner wrote annotations: of those about devices the nodes show which match any."""
    return bool(select_owners(get_object(pod, "metadata", "annotations")))


def _describe_missing(case: PodCase, namespace: str, name: str, now: datetime) -> ObjectFacts:
    """Describe a pod that does not exist: events about it, and about an owner that could not make it."""
    record = PODS.build_object_path(Key(namespace, name))
    source = Evidence("pod", record, now, words=str(build_missing_error(PODS.plural, name)))
    path = resources.EVENTS.build_collection_path(namespace)
    events = case.objects.select(EVENTS, namespace)
    unknown = [entry._replace(subject="owner") if entry.subject == "events" else entry for entry in case.unknown]
    return ObjectFacts(
        pod=PodOnCluster(source, is_gone=True),
        quotas=_list_quotas(case, namespace, now),
        events=[to_event_evidence(event, path) for event in case.objects.select_events("Pod", name, namespace)],
        owner_problem=objects.find_owner_problem(events, name, path),
        objects=case.objects,
        unknown=unknown,
    )


def _list_quotas(case: PodCase, namespace: str, now: datetime) -> list[Quota] | None:
    if kinds.RESOURCE_QUOTA in case.objects.unread:
        return None
    path = QUOTAS.build_collection_path(namespace)
    return [objects.to_quota(quota, path, now) for quota in case.objects.select(kinds.RESOURCE_QUOTA, namespace)]


async def read_nodes(api: Objects, now: datetime) -> tuple[list[NodeFacts], list[Unknown]]:
    """Read the first ``MAX_NODES`` nodes of the cluster, by name. Raises ``KubeApiError``."""
    path = NODES.build_collection_path()
    page = await api.read_page(path, limit=MAX_NODES)
    named = [node for node in iterate_objects(page, "items") if get_text(node, "metadata", "name")]
    nodes = [objects.to_node_facts(node, _join_path(path, node), now) for node in named]
    if not get_text(page, "metadata", "continue"):
        return nodes, []
    return nodes, [Unknown("nodes", "not-read", f"the first {MAX_NODES} nodes were read")]


async def filter_existing_nodes(api: Objects, names: Collection[str]) -> list[str]:
    """Filter the names of nodes that the cluster has. Raises ``KubeApiError``."""
    # One by one: the names are few, and the list of a large cluster's nodes is megabytes.
    pages = await asyncio.gather(*(_list_node(api, name) for name in names))
    existing = {get_text(entry, "metadata", "name") for page in pages for entry in iterate_objects(page, "items")}
    return [name for name in names if name in existing]


async def read_lock(api: Objects, node: str, now: datetime) -> HeldLock | None:
    """Read the lock that a node has now; None without one. Raises ``KubeApiError``."""
    path, page = NODES.build_collection_path(), await _list_node(api, node)
    nodes = [objects.to_node_facts(entry, _join_path(path, entry), now) for entry in iterate_objects(page, "items")]
    return nodes[0].lock if nodes else None


async def _list_node(api: Objects, node: str) -> Fields:
    # A list, because the API has the right to list nodes (deploy/kustomize/base/rights.yaml).
    return await api.read_page(NODES.build_collection_path(), limit=1, fieldSelector=f"metadata.name={node}")


def _join_path(collection: str, facts: Fields) -> str:
    return f"{collection}/{get_text(facts, 'metadata', 'name')}"
