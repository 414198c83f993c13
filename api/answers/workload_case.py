"""Objects for a question about one workload, read by the API's own account: the same that the direct mode reads."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from api.answers.object_lists import ObjectList, ObjectLists
from api.answers.pod_case import EVENTS
from api.http.errors import BadRequestError, NotFoundError, UnavailableError
from engine.cases.similar_names import list_similar_names
from engine.cases.workload_lists import list_collections, list_family_kinds
from engine.cases.workload_words import WORDS, parse_word
from engine.cases.workloads import CaseWorkload
from engine.snapshot.case_objects import EVENT_KINDS
from engine.snapshot.needed_kinds import GroupVersions, ListedKind
from runtime.kubernetes import resources
from runtime.kubernetes.object_fields import Fields


async def find_workload(
    lists: ObjectLists, namespace: str, word: str, name: str, *, sees_others: bool
) -> tuple[CaseWorkload, Sequence[ObjectList]]:
    """Find the workload in the list of its kind, and read the lists around it. Raises ``ApiError``.

    ``sees_others``: names of other namespaces may help a caller who has mistyped this one.
    """
    if not parse_word(word):
        raise BadRequestError(
            f"{word} is not a kind of workload", f"Write one of {', '.join(WORDS)}, or ask for a pod."
        )
    versions = await lists.read_versions()
    collections = list_collections(word, namespace, versions)
    if not collections:
        raise NotFoundError(f"the cluster has no kind {word}", "`kubectl api-resources` lists the kinds that it has.")
    read = await asyncio.gather(*map(lists.read, collections))
    for collection in read:
        if entry := collection.table.get((namespace, name)):
            key = CaseWorkload(collection.kind, namespace, name)
            around = await asyncio.gather(*map(lists.read, _list_around(key, entry, versions)))
            return key, [*read, *around]
    _refuse_unread(read)
    elsewhere = list_collections(word, "", versions) if sees_others else []
    raise _to_missing_error(namespace, word, name, [*read, *await asyncio.gather(*map(lists.read, elsewhere))])


def _list_around(key: CaseWorkload, entry: Fields, versions: GroupVersions) -> Iterator[ListedKind]:
    yield ListedKind(EVENTS, resources.EVENTS.build_collection_path(key.namespace))
    yield from (listed for listed in list_family_kinds(key, entry, versions) if listed.kind not in EVENT_KINDS)


def _refuse_unread(read: Iterable[ObjectList]) -> None:
    for collection in read:
        if collection.error or collection.is_cut:
            problem = collection.error or f"there are more than {len(collection.table):,}"
            cause = f"the API could not list all of {collection.kind} in its namespace: {problem}"
            raise UnavailableError(
                cause,
                "Give its service account the right (deploy/kustomize/components/diagnosis/owners), or read the "
                "cluster with your own kubeconfig: schedulerlog why without --api-url.",
            )


def _to_missing_error(namespace: str, word: str, name: str, read: Iterable[ObjectList]) -> NotFoundError:
    similar = list_similar_names([entry for listed in read for entry in listed.table.values()], namespace, name)
    hint = f"Similar names: {', '.join(similar)}." if similar else f"`kubectl get {word} -n {namespace}` lists them."
    return NotFoundError(f"{word} {namespace}/{name} does not exist", hint)
