"""Lists of objects that an answer about one workload needs: its family, its pods, and what a verdict on them needs."""

from collections.abc import Iterator

from engine.cases.unmade_pods import find_template
from engine.cases.workload_words import CHILDREN, HOLDERS, parse_word
from engine.cases.workloads import CaseWorkload
from engine.snapshot import kinds
from engine.snapshot.needed_kinds import (
    GroupVersions,
    ListedKind,
    build_collection_path,
    build_root,
    list_for_verdict,
    list_named,
    list_own,
    list_queues,
)
from runtime.kubernetes.object_fields import Fields, get_object, iterate_objects


def list_collections(word: str, namespace: str, versions: GroupVersions) -> list[ListedKind]:
    """List the kinds that a word names and that the cluster has; an empty ``namespace`` means all of them."""
    return [listed for kind in parse_word(word) if (listed := _find_collection(kind, namespace, versions))]


def build_version(kind: str, versions: GroupVersions) -> str:
    """Build the ``apiVersion`` of a kind's objects; it ends with a slash if the cluster does not have the group."""
    _, _, group = kind.partition(".")
    return f"{group}/{versions.find_preferred(group)}" if group else "v1"


def _find_collection(kind: str, namespace: str, versions: GroupVersions) -> ListedKind | None:
    version = build_version(kind, versions)
    if version.endswith("/"):
        return None
    return ListedKind(kind, build_collection_path(version, kind.partition(".")[0], namespace))


def list_family_kinds(key: CaseWorkload, entry: Fields, versions: GroupVersions) -> list[ListedKind]:
    """List the kinds around a workload; ``entry`` is its object."""
    return [
        *list_own(key.namespace),
        *_list_children(key, entry, versions),
        *list_for_verdict(get_object(find_template(get_object(entry, "spec")), "spec"), versions),
        *list_queues(key.namespace, versions),
        # Its ended pods too, which the list of all pods leaves out.
        ListedKind(kinds.POD, f"{build_root('/api/v1', key.namespace)}/pods"),
    ]


def _list_children(key: CaseWorkload, entry: Fields, versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kinds that a workload makes before pods, and the owner of an object that only holds pods back."""
    makers = [key.kind]
    for owner in iterate_objects(entry, "metadata", "ownerReferences") if key.kind in HOLDERS else ():
        listed = list_named(owner, key.namespace)
        makers.append(listed.kind)
        yield listed
    for kind in dict.fromkeys(child for maker in makers for child in CHILDREN.get(maker, ())):
        if collection := _find_collection(kind, key.namespace, versions):
            yield collection
