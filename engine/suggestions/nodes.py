"""Suggestions about complete nodes: get devices registered again, and remove a lock that a bind left.

Devices that come back are judged in columns of their own: every registered node refuses the pod, so the choice among
all nodes is the choice among the returning ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from engine.fit.devices import node_columns
from engine.fit.devices.as_of import put
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_columns import USED
from engine.fit.devices.pod_usage import PodUse
from engine.hami.node_lock import EXPIRES_AFTER
from engine.hami.node_registration import read_node
from engine.hami.reason_codes import ReasonCode
from engine.hami.vendors import Vendors
from engine.suggestions.ask import Ask
from engine.suggestions.search import build_suggestion
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import Trial
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized, NodeObserved, NodeStateChanged

BIND_SECONDS: Final = timedelta(seconds=60)
"""Time after which a bind has most probably been given up."""


class LastRegistration(NamedTuple):
    """Last registration of a node, and changes of its pods since then."""

    state: NodeStateChanged
    ended: Sequence[PodUse] = ()
    """Uses of pods that have ended since."""
    begun: Sequence[PodUse] = ()


@dataclass(frozen=True, slots=True)
class UnregisteredNodes:
    """Nodes that the scheduler was offered and has no devices of.

    columns: their devices, as if they were registered. since: node to when it was last seen with them, None if only its
    capacity names them. without: nodes whose kubelet offers devices of which nothing else is reported.
    """

    columns: ClusterColumns
    since: Mapping[str, datetime | None]
    without: Sequence[str] = ()


class HeldNodeLock(NamedTuple):
    """Lock of a node. seen_at: time of the last bind that failed for it, or of the last reading from the node."""

    node: str
    holder: str
    since: datetime
    seen_at: datetime


def list_withheld_nodes(attempt: AttemptSummarized) -> frozenset[str]:
    """List the nodes that the scheduler left to another one: registering their devices again lets no pod in."""
    codes = [
        position
        for position, refusal in enumerate(attempt.refusals)
        if refusal.bare == ReasonCode.NODE_OF_ANOTHER_SCHEDULER
    ]
    return frozenset(attempt.nodes[row] for row in np.flatnonzero(np.isin(attempt.refusal, codes)).tolist())


def build_unregistered_nodes(
    vendors: Vendors, last: Sequence[LastRegistration], observed: Sequence[NodeObserved]
) -> UnregisteredNodes:
    """Build the nodes' devices from each node's last registration, else from its capacity."""
    columns, since, without = ClusterColumns(vendors), dict[str, datetime | None](), list[str]()
    for registration in last:
        put(columns, registration.state)
        since[registration.state.node] = registration.state.observed_at
        _follow_pods(columns, registration)
    for status in observed:
        if status.node in since:
            continue
        object_ = {
            "metadata": {"name": status.node},
            "status": {"capacity": status.capacity, "allocatable": status.allocatable},
        }
        devices = read_node(object_, vendors).combine_devices(vendors)
        if devices:
            columns.register(status.node, devices)
            since[status.node] = None
        elif any(status.allocatable.get(vendor.resources.count, "0") != "0" for vendor in vendors):
            without.append(status.node)
    return UnregisteredNodes(columns, since, without)


def _follow_pods(columns: ClusterColumns, last: LastRegistration) -> None:
    entry = columns.get_entry(last.state.node)
    if entry is None:
        return
    for sign, uses in ((-1, last.ended), (1, last.begun)):
        for use in uses:
            node_columns.add_use(columns.devices, columns.nodes, entry, use, sign)
    for name in USED:
        # A pod that the state did not count yet can't have freed anything.
        held = columns.devices[name][entry.rows_slice]
        np.maximum(held, 0, out=held)
        columns.nodes[name][entry.id] = held.sum()


def restrict_trial(trial: Trial, unregistered: UnregisteredNodes, offered: Sequence[str]) -> Trial:
    """Restrict the trial to the offered nodes that would come back, with the quotas as they are."""
    columns = unregistered.columns
    columns.quotas = trial.columns.quotas
    offered = tuple(name for name in offered if columns.get_entry(name) and not trial.columns.get_entry(name))
    return Trial(columns, offered, trial.policy)


def suggest_registration(trial: Trial, ask: Ask, unregistered: UnregisteredNodes) -> Iterator[Suggestion]:
    """Suggest the node on which the pod fits once its devices are registered as they last were."""
    again = restrict_trial(trial, unregistered, trial.offered)
    decision = again.decide(ask)
    if decision and decision.chosen and (proved := again.decide(ask, names=[decision.chosen])):
        before, before_zh = _describe_last_time(unregistered.since[decision.chosen])
        yield build_suggestion([Edit("registration", decision.chosen, before, "", before_zh=before_zh)], proved)


def _describe_last_time(since: datetime | None) -> tuple[str, str]:
    if since is None:
        return "never yet; its capacity names them", "从未注册；按节点容量评估"
    registered_at = format_rfc3339(since)
    return f"last at {registered_at}", f"上次注册于 {registered_at}"


def suggest_unlocking(trial: Trial, ask: Ask, locks: Mapping[str, HeldNodeLock], now: datetime) -> list[Suggestion]:
    """Suggest removing a stale node lock that stops the bind of a pod that fits.

    A lock younger than `BIND_SECONDS` belongs to a bind at work; past the limit, the scheduler takes the lock over at
    its next attempt.
    """
    decision = trial.decide(ask)
    lock = locks.get(decision.chosen or "") if decision else None
    if decision is None or lock is None or now - lock.since < BIND_SECONDS:
        return []
    # A bind that failed for an older lock shows that its scheduler waits longer than HAMi does by default.
    if now - lock.since > EXPIRES_AFTER and lock.seen_at - lock.since <= EXPIRES_AFTER:
        return []
    return [build_suggestion([Edit("lock", lock.node, lock.holder, "")], decision)]
