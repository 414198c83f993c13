"""Objects for a question about a workload, read from a live cluster: its family, its pods, and what a verdict needs."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from cli.client.problems import NotFound, Problem, WrongRequest
from cli.direct.pod_case import LiveCase, build_live_case
from cli.direct.reader import ObjectReader, read_versions
from cli.direct.similar_names import list_similar_names
from engine.cases.unmade_pods import find_template
from engine.cases.workload_words import CRON_JOB, DEPLOYMENT, HOLDERS, JOB, REPLICA_SET, WORDS, parse_word
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
from runtime.kubernetes.object_fields import get_object, iterate_objects
from schemas.json_types import Json

_CHILDREN = {DEPLOYMENT: REPLICA_SET, CRON_JOB: JOB}
"""Kind that stands between a workload and its pods."""


def read_workload_case(
    reader: ObjectReader, namespace: str, word: str, name: str
) -> tuple[LiveCase, CaseWorkload] | Problem:
    """Read a case about one workload; a problem if it does not exist or can't be read."""
    if not parse_word(word):
        return WrongRequest(f"{word} is not a kind of workload", f"Write one of {', '.join(WORDS)}, or pod.")
    versions = read_versions(reader)
    collections = {
        kind: collection for kind in parse_word(word) if (collection := _find_path(kind, namespace, versions))
    }
    if not collections:
        return NotFound(f"the cluster has no kind {word}", "`kubectl api-resources` lists the kinds that it has.")
    problem: Problem | None = None
    for kind, (version, path) in collections.items():
        entry = reader.get(f"{path}/{quote(name, safe='')}")
        if not isinstance(entry, Problem):
            entry = {"apiVersion": version, "kind": kind.partition(".")[0], **entry}
            return _read_family(reader, versions, CaseWorkload(kind, namespace, name), entry)
        problem = entry if problem is None or isinstance(problem, NotFound) else problem
    if problem and not isinstance(problem, NotFound):
        return problem
    return _explain_absence(reader, collections.values(), namespace, word, name)


def _find_path(kind: str, namespace: str, versions: GroupVersions) -> tuple[str, str] | None:
    """Find the version and the path of a kind's objects; None if the cluster does not have its API group."""
    name, _, group = kind.partition(".")
    version = f"{group}/{versions.find_preferred(group)}" if group else "v1"
    if version.endswith("/"):
        return None
    return version, build_collection_path(version, name, namespace)


def _read_family(
    reader: ObjectReader, versions: GroupVersions, key: CaseWorkload, entry: Json
) -> tuple[LiveCase, CaseWorkload]:
    listed = [
        *list_own(key.namespace),
        *_list_children(key, entry, versions),
        *list_for_verdict(get_object(find_template(get_object(entry, "spec")), "spec"), versions),
        *list_queues(key.namespace, versions),
        # Its ended pods too, which the list of all pods leaves out.
        ListedKind(kinds.POD, f"{build_root('/api/v1', key.namespace)}/pods"),
    ]
    read = reader.list_kinds(listed)
    read.objects.append(entry)
    return build_live_case(reader, read, None, key.namespace), key


def _list_children(key: CaseWorkload, entry: Json, versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kind that a workload makes before pods, or the owner of an object that only holds pods back."""
    if child := _CHILDREN.get(key.kind):
        collection = _find_path(child, key.namespace, versions)
        yield from [ListedKind(child, collection[1])] if collection else []
    if key.kind in HOLDERS:
        for owner in iterate_objects(entry, "metadata", "ownerReferences"):
            yield list_named(owner, key.namespace)


def _explain_absence(
    reader: ObjectReader, paths: Iterable[tuple[str, str]], namespace: str, word: str, name: str
) -> Problem:
    """Explain that the workload does not exist, with the nearest names, also in other namespaces."""
    collections = [ListedKind(word, path) for _, path in paths]
    elsewhere = [ListedKind(word, path.replace(f"/namespaces/{quote(namespace, safe='')}", "")) for _, path in paths]
    read = reader.list_kinds([*collections, *elsewhere])
    similar = list_similar_names(read.objects, namespace, name)
    hint = f"Similar names: {', '.join(similar)}." if similar else f"`kubectl get {word} -n {namespace}` lists them."
    return NotFound(f"{word} {namespace}/{name} does not exist", hint)
