"""Objects for a question about pods, read from a live cluster: the pod's namespace, nodes and pods, groups and queues.

The reading climbs as far as the user's rights allow: the pod with its events, claims and quotas; then nodes and all
pods, on which the pod is judged; then the objects of queues and gangs that the cluster has.
"""

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from cli.client.problems import NotFound, Problem
from cli.direct.reader import ObjectReader, ReadObjects, read_versions
from cli.direct.scheduler_logs import MAX_AGE, LogReading, read_scheduler_log
from engine.cases.anonymous_objects import replace_names
from engine.cases.held_devices import holds_shares
from engine.cases.workload_words import DEPLOYMENT, HOLDERS, WORDS
from engine.simulation.own_schedulers import list_setting_maps
from engine.snapshot import kinds
from engine.snapshot.case_objects import collect_objects
from engine.snapshot.needed_kinds import (
    EVENTS,
    NODES,
    PODS,
    STORAGE,
    WEBHOOKS,
    GroupVersions,
    ListedKind,
    build_collection_path,
    build_root,
    list_devices,
    list_for_verdict,
    list_named,
    list_node,
    list_own,
    list_queues,
    list_shared_devices,
    list_simulated,
    list_webhooks,
)
from ingest.cases.read_case import SAVED_CASE, ClusterCase, build_case
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects, list_conditions
from schemas.codec.records import format_rfc3339
from schemas.json_types import Json

_MEMBER: Final = "case/objects.json"


@dataclass(frozen=True, slots=True)
class LiveCase:
    """A case of a live cluster, and what the user may not read of it."""

    case: ClusterCase
    pod: Json | None
    """Object of the pod; None if the pod does not exist."""
    problems: dict[str, Problem] = field(default_factory=dict)
    """By kind (``engine.snapshot.kinds``)."""
    log: LogReading | None = None
    """Log of the pod's scheduler; None where it was not looked for."""


def read_pod_case(reader: ObjectReader, namespace: str, name: str) -> LiveCase | Problem:
    """Read a case about one pod; a problem if the pod itself can't be read."""
    pod = reader.get(f"{build_root('/api/v1', namespace)}/pods/{quote(name, safe='')}")
    if isinstance(pod, NotFound):
        # The names of the others, among which the meant one may be.
        return build_live_case(reader, reader.list_kinds([*list_own(namespace), PODS]), None, namespace)
    if isinstance(pod, Problem):
        return pod
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    owners = [list_named(owner, namespace) for owner in iterate_objects(pod, "metadata", "ownerReferences")]
    listed = [*list_own(namespace), *owners]
    node = get_text(pod, "spec", "nodeName")
    if node:
        listed += [list_node(node), *(list_shared_devices(read_versions(reader)) if holds_shares(pod) else [])]
    else:
        versions = read_versions(reader)
        listed += [*list_for_verdict(get_object(pod, "spec"), versions), *list_queues(namespace, versions)]
        listed += [*list_shared_devices(versions), *list_webhooks(pod)]
    read = reader.list_kinds(listed)
    if node:
        # Without it only the models of the pod's devices are unknown.
        read.problems.pop(kinds.NODE, None)
    live = build_live_case(reader, read, pod, namespace)
    if not node:
        return replace(live, log=read_scheduler_log(reader, live.case, pod, live.case.objects.select(kinds.POD)))
    if not _was_placed_lately(pod):
        return live
    # Only to find its scheduler: who placed the pod, and before which other node.
    others = collect_objects(reader.list_kinds([PODS]).objects).select(kinds.POD)
    return replace(live, log=read_scheduler_log(reader, live.case, pod, others))


def _was_placed_lately(pod: Json) -> bool:
    """Tell whether the pod was placed within the part of its scheduler's log that is read."""
    placed = (condition for condition in list_conditions(pod) if condition.type == "PodScheduled")
    times = [condition.last_transition_at for condition in placed if condition.last_transition_at]
    return bool(times) and datetime.now(UTC) - times[0] < MAX_AGE


def read_simulated_case(reader: ObjectReader) -> LiveCase:
    """Read a case about pods that do not exist yet or move: everything that decides whether and where they start."""
    return build_live_case(reader, reader.list_kinds(list_simulated(read_versions(reader))), None, "")


def read_pending_case(reader: ObjectReader, namespace: str = "") -> LiveCase:
    """Read a case about everything that waits: also queues, groups, workloads without pods, and pods that failed."""
    read = reader.list_kinds([*_list_pending(read_versions(reader), namespace), *WEBHOOKS])
    # Without them only the cause of a missing call is unknown.
    for kind, *_ in WEBHOOKS:
        read.problems.pop(kind, None)
    return build_live_case(reader, read, None, namespace)


def read_purchase_case(reader: ObjectReader) -> LiveCase:
    """Read a case about what waits, and what decides whether it would start on further nodes."""
    versions = read_versions(reader)
    listed = {entry.path + str(entry.query): entry for entry in _list_pending(versions, "")}
    listed |= {entry.path + str(entry.query): entry for entry in list_simulated(versions)}
    return build_live_case(reader, reader.list_kinds(listed.values()), None, "")


def _list_pending(versions: GroupVersions, namespace: str) -> list[ListedKind]:
    root = build_root("/api/v1", namespace) if namespace else "/api/v1"
    failed = ListedKind(kinds.POD, f"{root}/pods", {"fieldSelector": "status.phase=Failed"})
    workloads = list_makers(namespace, versions)
    devices = [*list_devices(versions), *list_shared_devices(versions)]
    return [*_list_basics(namespace), failed, *devices, *list_queues(namespace, versions), *workloads]


def _list_basics(namespace: str) -> list[ListedKind]:
    listed = list_own(namespace) if namespace else [ListedKind(EVENTS, "/api/v1/events")]
    return [*listed, NODES, PODS, *STORAGE]


def list_makers(namespace: str, versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kinds that make pods and that the cluster has."""
    for kind in dict.fromkeys(kind for named in WORDS.values() for kind in named):
        name, _, group = kind.partition(".")
        version = versions.find_preferred(group)
        if version and kind not in (*HOLDERS, DEPLOYMENT):
            yield ListedKind(kind, build_collection_path(f"{group}/{version}", name, namespace))


def read_nodes_case(reader: ObjectReader) -> LiveCase:
    """Read a case about the nodes, and the pods that hold something of them."""
    listed = [NODES, PODS, *list_shared_devices(read_versions(reader))]
    return build_live_case(reader, reader.list_kinds(listed), None, "")


def build_live_case(reader: ObjectReader, read: ReadObjects, pod: Json | None, namespace: str) -> LiveCase:
    """Build the case of what was read; without the right to list all pods it has those of the namespace."""
    if kinds.POD in read.problems and namespace:
        namespace_pods = reader.list_kinds([ListedKind(kinds.POD, f"{build_root('/api/v1', namespace)}/pods")])
        read.objects += namespace_pods.objects
    objects = [*read.objects, *([pod] if pod else [])]
    case = build_case(objects, read.problems, datetime.now(UTC), namespace)
    if settings := list(_read_settings(reader, case.objects.select(kinds.POD))):
        case = build_case([*objects, *settings], read.problems, datetime.now(UTC), namespace)
    return LiveCase(case, pod, read.problems)


def _read_settings(reader: ObjectReader, pods: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    """Read the ConfigMaps with settings of our schedulers; one that can't be read leaves its scheduler the defaults."""
    for namespace, name in list_setting_maps(pods):
        item = reader.get(f"{build_root('/api/v1', namespace)}/configmaps/{quote(name, safe='')}")
        if not isinstance(item, Problem):
            yield {"apiVersion": "v1", "kind": "ConfigMap", **item}


def save_case(live: LiveCase, file: Path) -> int:
    """Write the case into a new file, and return the number of objects in it. Raises ``OSError``."""
    attempts = [live.log.attempts.to_object()] if live.log and live.log.attempts else []
    objects = [*replace_names([*live.case.objects.iterate_objects(), *attempts]), _describe_reading(live)]
    content = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, option=orjson.OPT_INDENT_2)
    member = tarfile.TarInfo(_MEMBER)
    member.size, member.mode = len(content), 0o600
    with file.open("xb") as output, tarfile.open(fileobj=output, mode="w:gz") as archive:
        archive.addfile(member, io.BytesIO(content))
    return len(objects) - 1


def _describe_reading(live: LiveCase) -> Json:
    """Describe when the cluster was read, and what could not be read of it."""
    kind, _, group = SAVED_CASE.partition(".")
    read_at = live.case.read_at
    metadata = {"name": "case", **({"creationTimestamp": format_rfc3339(read_at)} if read_at else {})}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "unread": sorted(live.problems)}
