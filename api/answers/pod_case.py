"""Objects for a question about one pod, read by the API's own account: the same that the direct mode reads.

The pod itself is read for each question; lists of its namespace and of the cluster are shared and remembered
(``object_lists``). What may not be read is noted, and the answer stands on the rest.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from api.answers.object_api import Objects
from api.answers.object_lists import ObjectList, ObjectLists
from engine.cases.held_devices import holds_shares
from engine.diagnosis.facts import Cause, Unknown
from engine.diagnosis.layers.group_members import has_group
from engine.diagnosis.layers.reservations import RESERVATIONS
from engine.hami.allocation import list_allocations
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects, list_claim_names
from engine.snapshot.needed_kinds import (
    STORAGE,
    GroupVersions,
    ListedKind,
    build_root,
    list_devices,
    list_devices_of_resources,
    list_for_verdict,
    list_named,
    list_node,
    list_own,
    list_queues,
    list_shared_devices,
    list_webhooks,
)
from runtime.kubernetes import resources
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.json_types import Json

EVENTS: Final = "Event.events.k8s.io"
_SUBJECTS: Final = {
    EVENTS: "events", kinds.VOLUME_CLAIM: "claims", kinds.RESOURCE_QUOTA: "quotas", kinds.NODE: "nodes",
    kinds.POD: "pods", kinds.NAMESPACE: "pods", kinds.RESOURCE_CLAIM: "device claims",
    kinds.CLAIM_TEMPLATE: "device claims", kinds.RESOURCE_SLICE: "device claims", kinds.DEVICE_CLASS: "device claims",
    kinds.MUTATING_WEBHOOKS: "webhooks",
    **{listed.kind: "volumes" for listed in STORAGE},
}  # fmt: skip
"""Subject of what is unknown without a kind; "queues" and "owner object" for the others."""


@dataclass(frozen=True, slots=True)
class PodCase:
    """Objects around a pod."""

    pod: Json | None
    """Object of the pod; None if it does not exist."""
    objects: CaseObjects
    lists: Sequence[ObjectList] = ()
    """Lists on which a verdict on the pod stands; empty if none is needed."""
    unknown: list[Unknown] = field(default_factory=list)


async def read_pod_case(
    api: Objects, lists: ObjectLists, namespace: str, name: str, needs_verdict: Callable[[Json], bool]
) -> PodCase:
    """Read the objects around a pod. Raises ``KubeApiError`` if the pod itself can't be read.

    ``needs_verdict`` decides whether a pod that waits for a node has to be judged on the cluster's objects.
    """
    try:
        pod: Json | None = await api.get(resources.PODS.build_object_path(resources.Key(namespace, name)))
    except KubeApiError as error:
        if not error.is_missing:
            raise
        pod = None
    pod = {**pod, "apiVersion": "v1", "kind": "Pod"} if pod else None
    is_judged = pod is not None and _waits_for_node(pod) and needs_verdict(pod)
    versions = await lists.read_versions()
    listed = list(_list_needed(pod, namespace, versions, is_judged=is_judged))
    read = await asyncio.gather(*map(lists.read, listed))
    more = [*_list_instead(read, namespace, name), *_list_served_devices(pod, read, versions)]
    read += await asyncio.gather(*map(lists.read, more))
    return PodCase(pod, _build_objects(read, pod, namespace, name), read if is_judged else (), _list_unknown(read))


def _waits_for_node(pod: Json) -> bool:
    spec = get_object(pod, "spec")
    is_waiting = get_text(pod, "status", "phase") in ("", "Pending") and not get_text(spec, "nodeName")
    return is_waiting and not spec.get("schedulingGates")


def _list_needed(pod: Json | None, namespace: str, versions: GroupVersions, *, is_judged: bool) -> Iterator[ListedKind]:
    _, *claims_and_quotas = list_own(namespace)
    yield ListedKind(EVENTS, resources.EVENTS.build_collection_path(namespace))
    yield from (listed for listed in claims_and_quotas if not (is_judged and listed.kind == kinds.RESOURCE_QUOTA))
    if pod is None:
        return
    yield from (list_named(owner, namespace) for owner in iterate_objects(pod, "metadata", "ownerReferences"))
    if get_text(pod, "status", "phase") in ("Succeeded", "Failed"):
        return
    yield from list_queues(namespace, versions)
    spec = get_object(pod, "spec")
    if (node := get_text(spec, "nodeName")) and (list_allocations(pod) or holds_shares(pod)):
        # They have the models of the pod's devices.
        yield list_node(node)
        yield from list_shared_devices(versions)
    if is_judged:
        yield from (*list_for_verdict(spec, versions), *list_shared_devices(versions), *list_webhooks(pod))
        # HAMi's quotas are counted over all pods of a namespace, in the cluster's state that all verdicts share.
        yield ListedKind(kinds.RESOURCE_QUOTA, resources.QUOTAS.build_collection_path())
        return
    if list_claim_names(pod):
        yield from STORAGE[:2]
    if spec.get("resourceClaims"):
        yield from list_devices(versions)
    if has_group(pod):
        yield _list_pods(namespace)
    if get_text(spec, "schedulerName") == "kai-scheduler":
        yield _list_pods(RESERVATIONS)


def _list_pods(namespace: str) -> ListedKind:
    return ListedKind(kinds.POD, f"{build_root('/api/v1', namespace)}/pods")


def _list_served_devices(pod: Json | None, read: Sequence[ObjectList], versions: GroupVersions) -> list[ListedKind]:
    classes = [entry for listed in read if listed.kind == kinds.DEVICE_CLASS for entry in listed.table.values()]
    return list_devices_of_resources(get_object(pod, "spec"), classes, versions) if classes else []


def _list_instead(read: Sequence[ObjectList], namespace: str, name: str) -> Iterator[ListedKind]:
    """List what is read in place of lists that were cut or refused."""
    for entry in read:
        if entry.kind == EVENTS and entry.is_cut:
            selector = {"fieldSelector": f"regarding.kind=Pod,regarding.name={name}"}
            yield ListedKind(EVENTS, resources.EVENTS.build_collection_path(namespace), selector)
        if entry.kind == kinds.POD and entry.error:
            # The members of its group are in its namespace.
            yield _list_pods(namespace)


def _build_objects(read: Sequence[ObjectList], pod: Json | None, namespace: str, name: str) -> CaseObjects:
    objects = build_objects(read)
    if pod is None:
        return objects
    # Read a moment later than the lists.
    pods = {**objects.tables.get(kinds.POD, {}), (namespace, name): pod}
    return replace(objects, tables={**objects.tables, kinds.POD: pods})


def build_objects(read: Iterable[ObjectList]) -> CaseObjects:
    """Build the case of the lists; of two lists of a kind, the objects of the later one count."""
    lists = list(read)
    tables: dict[str, dict[tuple[str, str], Fields]] = {}
    for entry in lists:
        tables.setdefault(entry.kind, {}).update(entry.table)
    unread = frozenset(entry.kind for entry in lists if entry.error or entry.is_cut)
    return CaseObjects(tables, unread, frozenset(entry.kind for entry in lists) - unread)


def _list_unknown(read: Iterable[ObjectList]) -> list[Unknown]:
    """List what can't be known without the lists that were refused, failed or were cut; each subject once."""
    unknown: dict[str, Unknown] = {}
    for entry in read:
        subject = _SUBJECTS.get(entry.kind) or ("queues" if "." in entry.kind else "owner object")
        if entry.error:
            unknown.setdefault(subject, to_unknown(subject, entry.error))
        elif entry.is_cut:
            unknown.setdefault(subject, Unknown(subject, "not-read", f"{len(entry.table):,} objects were read"))
    return list(unknown.values())


def to_unknown(subject: str, error: KubeApiError) -> Unknown:
    """Note that the API server did not let this process read ``subject``."""
    cause: Cause = "api-server-down" if error.status == NO_ANSWER or error.status >= 500 else "not-allowed"
    return Unknown(subject, cause, str(error))
