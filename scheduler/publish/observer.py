"""Observer of the cluster: applies changes to the columns, and writes events about registrations and ended pods."""

import logging
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final, NamedTuple

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import explain_overclaim, has_ended
from engine.fit.devices.shared_nodes import SharedNodes
from engine.fit.events.attempt import Identity
from engine.hami.allocation import list_allocations
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE, HANDSHAKE
from engine.hami.node_events import to_node_registered
from engine.hami.node_registration import list_cordoned_devices
from engine.hami.registration import Registration
from runtime.kubernetes.object_fields import list_conditions
from runtime.kubernetes.pod_description import describe_pod
from runtime.telemetry.logs import identify_subject
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Object, get_annotation
from scheduler.publish.node_checks import NodeChecks
from scheduler.publish.spool_writer import SpoolWriter
from schemas.events import PodObserved, PodRef

log = logging.getLogger(__name__)

_DELETED: Final = "the node is gone"


class _Reported(NamedTuple):
    registration: Registration | None = None
    cause: str = ""
    cordoned: frozenset[str] = frozenset()


class _Placed(NamedTuple):
    pod: PodRef
    node: str
    phase: str


class Observer:
    """Implements `Watcher`. Writes an event when a node's registration changes, when a pod is first seen that was bound
    before, and when a pod with devices ends or is deleted. A pod that leaves the watch because it ended counts as
    deleted.

    claims: which observations of a pod are older than the scheduler's own decision. pod_labels: the labels of pods
    that are published. shares_with: schedulers whose pods may hold devices of nodes that are decided on.
    """

    def __init__(
        self,
        identity: Identity,
        columns: ClusterColumns,
        claims: Claims,
        event_writer: SpoolWriter,
        clock: Callable[[], datetime],
        checks: NodeChecks | None = None,
        pod_labels: tuple[str, ...] = (),
        shares_with: Collection[str] = (),
    ) -> None:
        self._shared = SharedNodes(columns, (identity.scheduler, *shares_with))
        self._pod_labels = pod_labels
        self._checks = checks
        self._identity, self._columns, self._claims = identity, columns, claims
        self._events, self._clock = event_writer, clock
        self._reported: dict[str, _Reported] = {}
        self._placed: dict[str, _Placed] = {}
        self._unusable: set[str] = set()
        """UIDs of the pods that claim more devices than there are; their devices are ignored."""
        self._waiting: set[str] = set()
        """UIDs of the pods that were not bound when they were last seen."""

    def accept_scheduler(self, pod: Object) -> None:
        """Accept the scheduler of a pod for which our extender is asked: its pods withhold no node."""
        if scheduler := (pod.get("spec") or {}).get("schedulerName"):
            self._shared.accept(scheduler)

    def on_node(self, node: Object) -> None:
        # Without the time: device plugins since v2.8 leave the handshake open, and its age must not drop a node.
        self._columns.apply_node(node)
        name = node["metadata"]["name"]
        registration, cause = self._columns.get_registration(name), self._columns.get_cause(name) or ""
        devices = frozenset(device.uuid for device in registration.devices) if registration else frozenset()
        cordoned = devices & list_cordoned_devices(node["metadata"].get("annotations") or {})
        self._report(name, _Reported(registration, cause, cordoned), get_annotation(node, HANDSHAKE) or "")
        if self._checks:
            self._checks.on_node(node)

    def on_node_deleted(self, name: str) -> None:
        self._columns.delete_node(name)
        # A node that never registered devices has nothing to take back.
        if self._reported.get(name, _Reported()).registration:
            self._report(name, _Reported(cause=_DELETED), "")
        self._reported.pop(name, None)
        if self._checks:
            self._checks.on_node_deleted(name)

    def _report(self, name: str, registered: _Reported, handshake: str) -> None:
        if self._reported.get(name, _Reported()) != registered:
            self._reported[name] = registered
            cluster, scheduler = self._identity
            event = to_node_registered(
                cluster, name, self._clock(), registered.registration, cause=registered.cause, handshake=handshake,
                scheduler=scheduler, cordoned=registered.cordoned,
            )  # fmt: skip
            self._events.write([event])

    def on_pod(self, pod: Object) -> None:
        is_sound = self._check_claims(pod)
        if is_sound and self._claims.accept(pod):
            self._columns.apply_pod(pod)
        if is_sound and not has_ended(pod):
            self._shared.on_pod(pod)
        else:
            self._shared.on_pod_deleted(pod["metadata"]["uid"])
        self._follow(pod)

    def _check_claims(self, pod: Object) -> bool:
        uid, problem = pod["metadata"]["uid"], explain_overclaim(pod, self._columns.vendors)
        if problem and uid not in self._unusable:
            self._unusable.add(uid)
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            text = "pod %s holds no devices, its annotations are no scheduler's: %s"
            log.warning(text, name, problem, extra=identify_subject(pod=name))
        elif not problem:
            self._unusable.discard(uid)
        return not problem

    def _follow(self, pod: Object) -> None:
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        node = (pod.get("spec") or {}).get("nodeName") or ""
        # Other pods hold no device, and a cluster has many of them.
        if node and get_annotation(pod, ASSIGNED_NODE) is not None:
            ref = PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=uid)
            placed = _Placed(ref, node, (pod.get("status") or {}).get("phase") or "")
            if uid not in self._placed and uid not in self._waiting and not has_ended(pod):
                self._report_earlier(placed, pod)
            self._placed[uid] = placed
        (self._waiting.discard if node else self._waiting.add)(uid)
        if has_ended(pod):
            self._report_end(uid, is_deleted=False)

    def _report_earlier(self, placed: _Placed, pod: Object) -> None:
        """Report a pod that was bound before it was first seen: no bind of ours shows what it holds."""
        event = PodObserved(
            cluster=self._identity.cluster,
            pod=placed.pod,
            observed_at=self._clock(),
            phase=placed.phase,
            node=placed.node,
            conditions=list_conditions(pod),
            description=describe_pod(pod, self._pod_labels),
            allocations=list_allocations(pod),
            bind_phase=get_annotation(pod, BIND_PHASE) or "",
        )
        self._events.write([event])

    def _report_end(self, uid: str, *, is_deleted: bool) -> None:
        # Popped: a pod that has ended is deleted later, and its end is one event.
        if placed := self._placed.pop(uid, None):
            pod, node, phase = placed
            self._events.write(
                [
                    PodObserved(
                        cluster=self._identity.cluster,
                        pod=pod,
                        observed_at=self._clock(),
                        phase=phase,
                        node=node,
                        deleted=is_deleted,
                    )
                ]
            )

    def on_pod_deleted(self, uid: str) -> None:
        self._claims.forget(uid)
        self._shared.on_pod_deleted(uid)
        self._waiting.discard(uid)
        self._unusable.discard(uid)
        self._columns.delete_pod(uid)
        self._report_end(uid, is_deleted=True)

    def on_quota(self, quota: Object) -> None:
        self._columns.apply_quota(quota)

    def on_quota_deleted(self, namespace: str, name: str) -> None:
        self._columns.delete_quota(namespace, name)
