"""Conversion of API server objects to facts. Pure: the API reads the objects, the tests have recorded ones."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from engine.diagnosis.facts import Claim, Evidence, HeldLock, NodeFacts, OwnerProblem, PodOnCluster, Quota
from engine.fit.events.event_builder import to_request
from engine.fit.judge.request.pod_request import list_requests
from engine.hami import node_lock
from engine.hami.annotations import BIND_PHASE, NODE_LOCK
from engine.hami.node_checks import check_registrations, list_vendor_registrations
from engine.hami.node_events import to_node_checked
from engine.hami.node_registration import read_node
from engine.hami.vendor_catalog import list_requested_vendors, list_vendors
from runtime.kubernetes.object_fields import (
    CONTAINER_STATUSES,
    NEVER_RAN,
    STARTING,
    Fields,
    get_object,
    get_text,
    iterate_objects,
    list_conditions,
    parse_moment,
)
from schemas.events import ObjectProblem

HANDSHAKE_LIMIT: Final = timedelta(seconds=300)
"""Limit from HAMi's guide for troubleshooting."""
_CREATE_FAILED: Final = frozenset(("FailedCreate", "FailedCreatePod"))
_KUBELET: Final = "kubelet"


def to_observed_pod(pod: Fields, path: str, now: datetime) -> PodOnCluster:
    """Convert a pod's object. ``path``: its path on the API server. ``now``: the time when it was read."""
    metadata, spec, status = get_object(pod, "metadata"), get_object(pod, "spec"), get_object(pod, "status")
    pod_conditions = list_conditions(pod)
    containers = [*iterate_objects(spec, "initContainers"), *iterate_objects(spec, "containers")]
    resources = {name for container in containers for name in get_object(container, "resources", "limits")}
    return PodOnCluster(
        source=Evidence("pod", path, now),
        uid=get_text(metadata, "uid"),
        phase=get_text(status, "phase"),
        node=get_text(spec, "nodeName"),
        is_being_deleted=bool(get_text(metadata, "deletionTimestamp")),
        scheduler=get_text(spec, "schedulerName"),
        created_at=parse_moment(get_text(metadata, "creationTimestamp")),
        gates=tuple(get_text(gate, "name") for gate in iterate_objects(spec, "schedulingGates")),
        conditions=pod_conditions,
        requests=[to_request(request) for request in list_requests(pod, list_requested_vendors(resources))],
        nominated=get_text(status, "nominatedNodeName"),
        bind_phase=get_text(metadata, "annotations", BIND_PHASE),
        spec=spec,
        labels=_to_texts(get_object(metadata, "labels")),
        annotations=_to_texts(get_object(metadata, "annotations")),
        reason=get_text(status, "reason"),
        message=get_text(status, "message"),
        has_run=_has_run(status),
        owners=_list_owners(metadata),
        problems=_list_container_problems(pod, now),
    )


def _to_texts(fields: Fields) -> dict[str, str]:
    return {key: value for key, value in fields.items() if isinstance(value, str)}


def _has_run(status: Fields) -> bool:
    """Tell whether a container runs, or has run and ended."""
    return any(
        get_text(container, *state, "startedAt") and get_text(container, *state, "reason") not in NEVER_RAN
        for kind in CONTAINER_STATUSES
        for container in iterate_objects(status, kind)
        for state in (("state", "running"), ("state", "terminated"), ("lastState", "terminated"))
    )


def _list_container_problems(pod: Fields, now: datetime) -> list[ObjectProblem]:
    """List the containers that can't start, with the last words of those that start again and again."""
    started = parse_moment(get_text(pod, "status", "startTime"))
    # Copies of objects are often without their times.
    since = started or parse_moment(get_text(pod, "metadata", "creationTimestamp")) or now
    problems = []
    for kind in CONTAINER_STATUSES:
        for container in iterate_objects(pod, "status", kind):
            reason = get_text(container, "state", "waiting", "reason")
            if reason in STARTING:
                continue
            name = get_text(container, "name")
            words = f"container {name}: {_describe_end(container)}" if name else _describe_end(container)
            problems.append(ObjectProblem(reason=reason, message=words, at=since, reported_by=_KUBELET))
    return problems


def _describe_end(container: Fields) -> str:
    """Describe how a container ended last, or what the kubelet says of one that has not run."""
    last = get_object(container, "lastState", "terminated")
    code, restarts = last.get("exitCode"), container.get("restartCount")
    parts = [
        f"ended with exit code {code}" if isinstance(code, int) else "",
        reason if (reason := get_text(last, "reason")) not in ("", "Error") else "",
        f"started again {restarts} times" if isinstance(restarts, int) and restarts > 1 else "",
    ]
    text = get_text(last, "message") or get_text(container, "state", "waiting", "message")
    return ": ".join(filter(None, (", ".join(filter(None, parts)), text)))


def _list_owners(metadata: Fields) -> tuple[str, ...]:
    owners = sorted(iterate_objects(metadata, "ownerReferences"), key=lambda owner: owner.get("controller") is not True)
    return tuple(f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}" for owner in owners)


def to_claim(name: str, path: str, claim: Fields | None, storage_class: Fields | None, now: datetime) -> Claim:
    """Convert a claim; ``claim`` is None if it does not exist, ``storage_class`` if it was not read."""
    mode = get_text(storage_class, "volumeBindingMode")
    waits = mode == "WaitForFirstConsumer" if mode else None
    finalizers = get_object(claim, "metadata").get("finalizers")
    return Claim(
        name,
        Evidence("claim", path, now),
        # A claim that was just made has no phase yet.
        get_text(claim, "status", "phase") or "Pending" if claim else "",
        waits,
        volume=get_text(claim, "spec", "volumeName"),
        storage_class=get_text(claim, "spec", "storageClassName"),
        deleted_at=parse_moment(get_text(claim, "metadata", "deletionTimestamp")),
        finalizers=tuple(name for name in finalizers if isinstance(name, str)) if isinstance(finalizers, list) else (),
    )


def to_quota(quota: Fields, path: str, now: datetime) -> Quota:
    hard, used = get_object(quota, "status", "hard"), get_object(quota, "status", "used")
    name = get_text(quota, "metadata", "name")
    return Quota(name, Evidence("quota", f"{path}/{name}", now), _to_amounts(hard), _to_amounts(used))


def _to_amounts(amounts: Fields) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}


def to_event_evidence(event: Fields, path: str) -> Evidence:
    """Convert a Kubernetes event (``events.k8s.io/v1``), with the number of times that it was seen."""
    reporter = get_text(event, "reportingController") or get_text(event, "deprecatedSource", "component")
    series = get_object(event, "series")
    count = series.get("count") or event.get("deprecatedCount") or 1
    return Evidence(
        "event",
        f"{path}/{get_text(event, 'metadata', 'name')}",
        _parse_time(event),
        reporter,
        {"times": count} if isinstance(count, int) else {},
        f"{get_text(event, 'reason')}: {get_text(event, 'note')}",
    )


def _parse_time(event: Fields) -> datetime | None:
    stamps = (
        get_text(event, "series", "lastObservedTime"),
        get_text(event, "deprecatedLastTimestamp"),
        get_text(event, "eventTime"),
    )
    return next((time for stamp in stamps if stamp and (time := parse_moment(stamp))), None)


def to_problem(event: Fields) -> ObjectProblem | None:
    """Convert a kubelet's report of a pod that does not start; None for other events."""
    reporter = get_text(event, "reportingController") or get_text(event, "deprecatedSource", "component")
    time = _parse_time(event)
    if time is None or reporter != _KUBELET or get_text(event, "type") != "Warning":
        return None
    return ObjectProblem(reason=get_text(event, "reason") or "Failed", message=get_text(event, "note"), at=time,
                         reported_by=reporter)  # fmt: skip


def find_owner_problem(events: Iterable[Fields], pod: str, path: str) -> OwnerProblem | None:
    """Find the latest event about an owner that could not create ``pod``; ``events`` are those of its namespace.

    Owners name their pods after themselves, with a hyphen and a suffix.
    """
    failures = [
        (time, entry)
        for entry in events
        if get_text(entry, "reason") in _CREATE_FAILED
        and pod.startswith(f"{get_text(entry, 'regarding', 'name')}-")
        and (time := _parse_time(entry))
    ]
    if not failures:
        return None
    time, latest = max(failures, key=lambda pair: pair[0])
    source = to_event_evidence(latest, path)
    problem = ObjectProblem(
        reason=get_text(latest, "reason"), message=get_text(latest, "note"), at=time, reported_by=source.reported_by
    )
    workload = f"{get_text(latest, 'regarding', 'kind')}/{get_text(latest, 'regarding', 'name')}"
    return OwnerProblem(workload, problem, source)


def to_node_facts(node: Fields, path: str, now: datetime) -> NodeFacts:
    name, annotations = get_text(node, "metadata", "name"), get_object(node, "metadata", "annotations")
    vendors = list_vendors(annotations)
    reading = read_node(node, vendors)
    devices = reading.combine_devices(vendors)
    # HAMi's scheduler writes its requests in local time, and its containers run in UTC.
    registrations = list_vendor_registrations(node, vendors, UTC)
    problems = check_registrations(registrations, str(reading.problem or ""), now, HANDSHAKE_LIMIT)
    ready = next((condition.status for condition in list_conditions(node) if condition.type == "Ready"), "")
    return NodeFacts(
        name,
        Evidence("node", path, now),
        ready == "True" if ready else None,
        node,
        len(devices.registration.devices) if devices else 0,
        to_node_checked("cluster", name, now, problems).problems,
        _parse_lock(annotations),
    )


def _parse_lock(annotations: Mapping[str, Any]) -> HeldLock | None:
    value = annotations.get(NODE_LOCK)
    if not isinstance(value, str) or not value:
        return None
    try:
        lock = node_lock.parse_lock(value)
    except node_lock.NodeLockError:
        return None
    return HeldLock(lock.since, "/".join(lock.owner) if any(lock.owner) else "")
