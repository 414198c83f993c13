"""Attempts without a cluster, Kafka or clock: what the API would say about them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from engine.fit import device_config, manifests
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.shared_nodes import list_shared_nodes
from engine.fit.events import event_builder
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import Circumstances
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs, SchedulingPolicy
from engine.fit.judge.request.pod_annotations import select_constraints
from engine.fit.manifests import Manifest
from engine.hami.go_values import to_mapping
from engine.hami.releases import LATEST, HamiRelease, observe_release
from engine.hami.vendors import ONLY_NVIDIA, Vendors
from engine.summaries.answer import build_detail, encode_schedulerlog
from engine.summaries.fold import summarize
from runtime.kubernetes.pod_description import describe_pod
from schemas.codec.records import decode, encode
from schemas.events import DEFAULT_CLUSTER, AttemptEvent, PodRef
from schemas.ids import count_microseconds


def simulate(
    manifest: Manifest,
    pod: Mapping[str, Any],
    name: str,
    policy: SchedulingPolicy,
    now: datetime,
    vendors: Vendors = ONLY_NVIDIA,
    shares_with: Collection[str] = (),
) -> list[AttemptEvent]:
    """Simulate the attempt, and return its events as a reader gets them; none when the pod requests no device.

    All nodes of the file are offered. Those where pods of other schedulers hold devices are withheld, as by the
    scheduler of this name; `shares_with`: schedulers whose pods withhold none.
    """
    columns, identity = build_columns(manifest, vendors), Identity(DEFAULT_CLUSTER, name)
    # The scheduler of the pod asks this one, so that it gives nothing away by itself.
    schedulers = {name, to_mapping(pod.get("spec")).get("schedulerName") or name, *shares_with}
    withheld = list_shared_nodes(columns, manifest.pods.values(), schedulers)
    return simulate_on(columns, list(manifest.nodes), pod, identity, policy, now, withheld)


def simulate_on(
    columns: ClusterColumns,
    nodes: Sequence[str],
    pod: Mapping[str, Any],
    identity: Identity,
    policy: SchedulingPolicy,
    now: datetime,
    withheld: Mapping[str, str] | None = None,
) -> list[AttemptEvent]:
    """Simulate as `simulate` does, on these nodes of the columns, which are left as they are. withheld: of `decide`."""
    answer = decide(columns, pod, list(nodes), policy, withheld)
    return build_attempt_events(answer, len(nodes), pod, columns.vendors, identity, now)


def build_attempt_events(
    answer: Decision | NotOurs | Failed,
    offered: int,
    pod: Mapping[str, Any],
    vendors: Vendors,
    identity: Identity,
    now: datetime,
) -> list[AttemptEvent]:
    """Build the events of an attempt that was only simulated; none when the pod requests no device."""
    metadata = pod["metadata"]
    ref = PodRef(**{key: metadata[key] for key in ("namespace", "name", "uid")})
    attempt = AttemptRef.start(identity, ref, now)
    constraints = select_constraints(to_mapping(metadata.get("annotations")), vendors)
    circumstances = Circumstances(describe_pod(pod), constraints=constraints)
    if isinstance(answer, Decision):
        # Through the form on the wire, so that the answer is what a reader of Kafka would give.
        epoch = count_microseconds(now)
        return _read_back(event_builder.build_events(attempt, answer, now, epoch=epoch, circumstances=circumstances))
    if isinstance(answer, Failed):
        return _read_back([event_builder.build_failure(attempt, answer, offered, now, circumstances)])
    return []


def build_columns(manifest: Manifest, vendors: Vendors = ONLY_NVIDIA) -> ClusterColumns:
    """Build the devices of the file's nodes, with what its pods hold of them."""
    columns = ClusterColumns(vendors, reads_state=True)
    for quota in manifest.quotas.values():
        columns.apply_quota(quota)
    for node in manifest.nodes.values():
        columns.apply_node(node)
    for other in manifest.pods.values():
        columns.apply_pod(other)
    return columns


def simulate_files(
    cluster: Path,
    pod: Path,
    name: str,
    policy: SchedulingPolicy,
    now: datetime,
    device_config_file: Path | None,
    *,
    release: HamiRelease | None = None,
    shares_with: Collection[str] = (),
    is_full: bool,
) -> str:
    """Simulate a pod's file on a cluster's file: the answer as JSON text; empty when the pod requests no device.

    release: that of HAMi; None for the one whose image the cluster's file shows. shares_with: as of `simulate`. Raises
    `ManifestError`, `DeviceConfigError`.
    """
    manifest, pod_object = manifests.read(cluster), manifests.read_pod(pod)
    release = release or observe_release(manifest.pods.values()) or LATEST
    vendors = device_config.read_for(release, device_config_file)
    events = simulate(manifest, pod_object, name, policy, now, vendors, shares_with)
    return to_schedulerlog(events, is_full=is_full) if events else ""


def _read_back(events: Iterable[AttemptEvent]) -> list[AttemptEvent]:
    records = map(encode, events)
    read = (decode(record.value, record.headers) for record in records)
    return [event for event in read if isinstance(event, AttemptEvent)]


def to_schedulerlog(events: Sequence[AttemptEvent], *, is_full: bool) -> str:
    """Convert the events of one attempt to the API's answer, as JSON text; `is_full` as with `?detail=full`."""
    summary = summarize(events)
    answer = encode_schedulerlog(summary, additions={"detail": build_detail(summary)} if is_full else None)
    text: bytes = orjson.dumps(orjson.loads(answer), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return text.decode()
