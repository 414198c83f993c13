"""Objects of the API server as facts. Pure: the API reads the objects, the tests have recorded ones."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from engine.diagnosis.facts import Claim, Evidence, HeldLock, NodeFacts, ObservedPod, OwnerProblem, Quota
from engine.fit.events.event_builder import request_of
from engine.fit.judge.request.pod_request import container_requests
from engine.hami import node_lock
from engine.hami.annotations import BIND_PHASE, NODE_LOCK
from engine.hami.checked_event import to_node_checked
from engine.hami.node_checks import check_registrations, list_vendor_registrations
from engine.hami.node_registration import read_node
from engine.hami.vendor_catalog import list_vendors
from runtime.kubernetes.object_fields import Fields, conditions, entries, moment, part, text
from schemas.events import ObjectProblem

HANDSHAKE_LIMIT: Final = timedelta(seconds=300)
"""As HAMi's guide for troubleshooting has it."""
_CREATE_FAILED: Final = frozenset(("FailedCreate", "FailedCreatePod"))
_KUBELET: Final = "kubelet"


def pod_state(pod: Fields, path: str, now: datetime) -> ObservedPod:
    """``path``: that of the object on the API server. ``now``: when it was read."""
    metadata, spec, status = part(pod, "metadata"), part(pod, "spec"), part(pod, "status")
    found = conditions(pod)
    return ObservedPod(
        source=Evidence("pod", path, now),
        uid=text(metadata, "uid"),
        phase=text(status, "phase"),
        node=text(spec, "nodeName"),
        is_being_deleted=bool(text(metadata, "deletionTimestamp")),
        scheduler=text(spec, "schedulerName"),
        created_at=moment(text(metadata, "creationTimestamp")),
        gates=tuple(text(gate, "name") for gate in entries(spec, "schedulingGates")),
        conditions=found,
        requests=[request_of(request) for request in container_requests(pod, list_vendors(()))],
        nominated=text(status, "nominatedNodeName"),
        bind_phase=text(metadata, "annotations", BIND_PHASE),
        spec=spec,
        labels={key: value for key, value in part(metadata, "labels").items() if isinstance(value, str)},
    )


def claim_names(pod: Fields) -> list[str]:
    """The PersistentVolumeClaims that the pod's volumes name."""
    volumes = list(entries(pod, "spec", "volumes"))
    named = [text(volume, "persistentVolumeClaim", "claimName") for volume in volumes]
    # Kubernetes makes the claim of an ephemeral volume, and calls it by pod and volume.
    own = [f"{text(pod, 'metadata', 'name')}-{text(volume, 'name')}" for volume in volumes if part(volume, "ephemeral")]
    return [name for name in (*named, *own) if name]


def claim(name: str, path: str, found: Fields | None, storage_class: Fields | None, now: datetime) -> Claim:
    """``found``: None where the claim does not exist; ``storage_class``: None where it was not read."""
    mode = text(storage_class, "volumeBindingMode")
    waits = mode == "WaitForFirstConsumer" if mode else None
    return Claim(name, Evidence("claim", path, now), text(found, "status", "phase") if found else "", waits)


def quota(found: Fields, path: str, now: datetime) -> Quota:
    hard, used = part(found, "status", "hard"), part(found, "status", "used")
    name = text(found, "metadata", "name")
    return Quota(name, Evidence("quota", f"{path}/{name}", now), _amounts(hard), _amounts(used))


def _amounts(found: Fields) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in found.items()}


def event(found: Fields, path: str) -> Evidence:
    """A Kubernetes event (``events.k8s.io/v1``), with how often it was seen."""
    reporter = text(found, "reportingController") or text(found, "deprecatedSource", "component")
    series = part(found, "series")
    count = series.get("count") or found.get("deprecatedCount") or 1
    return Evidence(
        "event",
        f"{path}/{text(found, 'metadata', 'name')}",
        _seen_at(found),
        reporter,
        {"times": count} if isinstance(count, int) else {},
        f"{text(found, 'reason')}: {text(found, 'note')}",
    )


def _seen_at(found: Fields) -> datetime | None:
    stamps = (
        text(found, "series", "lastObservedTime"), text(found, "deprecatedLastTimestamp"), text(found, "eventTime"),
    )  # fmt: skip
    return next((time for stamp in stamps if stamp and (time := moment(stamp))), None)


def problem_of(found: Fields) -> ObjectProblem | None:
    """What a kubelet reports of a pod that does not start; None for other events."""
    reporter = text(found, "reportingController") or text(found, "deprecatedSource", "component")
    at = _seen_at(found)
    if at is None or reporter != _KUBELET or text(found, "type") != "Warning":
        return None
    return ObjectProblem(reason=text(found, "reason") or "Failed", message=text(found, "note"), at=at,
                         reported_by=reporter)  # fmt: skip


def owner_problem(events: Iterable[Fields], pod: str, path: str) -> OwnerProblem | None:
    """The latest event about an owner that could not make ``pod``; ``events`` are those of its namespace.

    Owners call their pods by their own name, a hyphen and a suffix.
    """
    found = [
        (at, entry)
        for entry in events
        if text(entry, "reason") in _CREATE_FAILED
        and pod.startswith(f"{text(entry, 'regarding', 'name')}-")
        and (at := _seen_at(entry))
    ]
    if not found:
        return None
    at, latest = max(found, key=lambda pair: pair[0])
    source = event(latest, path)
    problem = ObjectProblem(
        reason=text(latest, "reason"), message=text(latest, "note"), at=at, reported_by=source.reported_by
    )
    workload = f"{text(latest, 'regarding', 'kind')}/{text(latest, 'regarding', 'name')}"
    return OwnerProblem(workload, problem, source)


def node_state(node: Fields, path: str, now: datetime) -> NodeFacts:
    name, annotations = text(node, "metadata", "name"), part(node, "metadata", "annotations")
    vendors = list_vendors(annotations)
    reading = read_node(node, vendors)
    devices = reading.combine_devices(vendors)
    # HAMi's scheduler writes its requests in local time, and its containers run in UTC.
    found = list_vendor_registrations(node, vendors, UTC)
    problems = check_registrations(found, str(reading.problem or ""), now, HANDSHAKE_LIMIT)
    ready = next((condition.status for condition in conditions(node) if condition.type == "Ready"), "")
    return NodeFacts(
        name,
        Evidence("node", path, now),
        ready == "True" if ready else None,
        node,
        len(devices.registration.devices) if devices else 0,
        to_node_checked("cluster", name, now, problems).problems,
        _lock(annotations),
    )


def _lock(annotations: Mapping[str, Any]) -> HeldLock | None:
    value = annotations.get(NODE_LOCK)
    if not isinstance(value, str) or not value:
        return None
    try:
        lock = node_lock.parse_lock(value)
    except node_lock.NodeLockError:
        return None
    return HeldLock(lock.since, "/".join(lock.owner) if any(lock.owner) else "")
