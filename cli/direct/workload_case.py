"""Objects for a question about a workload, read from a live cluster: its family, its pods, and what a verdict needs."""

from urllib.parse import quote

from cli.client.problems import NotFound, Problem, WrongRequest
from cli.direct.pod_case import LiveCase, build_live_case
from cli.direct.reader import ObjectReader, read_known_versions
from engine.cases.similar_names import list_similar_names
from engine.cases.workload_lists import build_version, list_collections, list_family_kinds
from engine.cases.workload_words import WORDS, parse_word
from engine.cases.workloads import CaseWorkload
from engine.snapshot.needed_kinds import GroupVersions
from schemas.json_types import Json


def read_workload_case(
    reader: ObjectReader, namespace: str, word: str, name: str
) -> tuple[LiveCase, CaseWorkload] | Problem:
    """Read a case about one workload; a problem if it does not exist or can't be read."""
    if not parse_word(word):
        return WrongRequest(f"{word} is not a kind of workload", f"Write one of {', '.join(WORDS)}, or pod.")
    versions = read_known_versions(reader)
    if isinstance(versions, Problem):
        return versions
    collections = list_collections(word, namespace, versions)
    if not collections:
        return NotFound(f"the cluster has no kind {word}", "`kubectl api-resources` lists the kinds that it has.")
    problem: Problem | None = None
    for kind, path, _ in collections:
        entry = reader.get(f"{path}/{quote(name, safe='')}")
        if not isinstance(entry, Problem):
            entry = {"apiVersion": build_version(kind, versions), "kind": kind.partition(".")[0], **entry}
            return _read_family(reader, versions, CaseWorkload(kind, namespace, name), entry)
        problem = entry if problem is None or isinstance(problem, NotFound) else problem
    if problem and not isinstance(problem, NotFound):
        return problem
    return _explain_absence(reader, versions, namespace, word, name)


def _read_family(
    reader: ObjectReader, versions: GroupVersions, key: CaseWorkload, entry: Json
) -> tuple[LiveCase, CaseWorkload]:
    read = reader.list_kinds(list_family_kinds(key, entry, versions))
    read.objects.append(entry)
    return build_live_case(reader, read, None, key.namespace), key


def _explain_absence(reader: ObjectReader, versions: GroupVersions, namespace: str, word: str, name: str) -> Problem:
    """Explain that the workload does not exist, with the nearest names, also in other namespaces."""
    spaces = (namespace, "")
    read = reader.list_kinds([listed for space in spaces for listed in list_collections(word, space, versions)])
    similar = list_similar_names(read.objects, namespace, name)
    hint = f"Similar names: {', '.join(similar)}." if similar else f"`kubectl get {word} -n {namespace}` lists them."
    return NotFound(f"{word} {namespace}/{name} does not exist", hint)
