"""Events about one attempt, built from what was decided. Pure.

The events of an attempt in order: `DevicesJudged` records, `NodesJudged` records, `AttemptConcluded`. Rows stay numpy
columns and names stay the JSON that was made when the node registered, so that 40,000 verdicts cost a few milliseconds.
`schemas.codec.records.encode` writes them; every record of a cluster with ordinary names stays below 64 KiB.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from engine.fit.events.attempt import AttemptRef
from engine.fit.events.device_records import build_device_records, list_picked_devices
from engine.fit.events.node_records import build_node_records
from engine.fit.events.record_columns import INT64_MAX, NodeNames
from engine.fit.judge.decision import Decision, Failed
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami import node_lock
from engine.hami.node_lock import NodeLockError
from engine.hami.quantities import UNSET_PERCENT
from schemas.events import (
    AttemptConcluded,
    AttemptUnchanged,
    BindConcluded,
    DevicesJudged,
    LockHolder,
    NodesJudged,
    PodDescription,
    Request,
)

# Models that are built without validation below also name their empty lists and mappings: pydantic would look up the
# signature of each default factory, every time, which takes longer than everything else about a conclusion.


class Circumstances(NamedTuple):
    """Facts that are published with a conclusion although no verdict depends on them."""

    description: PodDescription | None = None
    settings_digest: str = ""
    """Digest of the scheduler's settings in force."""
    constraints: dict[str, str] | None = None
    """Annotations of the pod that constrain its devices; None where they are too long to publish."""


_NOT_KNOWN: Final = Circumstances()


def build_events(
    attempt: AttemptRef,
    decision: Decision,
    ended_at: datetime,
    error: str = "",
    *,
    epoch: int,
    circumstances: Circumstances = _NOT_KNOWN,
) -> Iterator[DevicesJudged | NodesJudged | AttemptConcluded]:
    """Build all events about one decision.

    error: why the decision could not be written to the pod. Then no node is chosen; the verdicts remain. epoch: of the
    revisions of nodes in the decision.
    """
    requests = [to_request(container) for container in decision.containers]
    common_fields, names = attempt.common_fields, NodeNames.measure(decision.node_names)
    devices = nodes = 0
    for devices_judged in build_device_records(common_fields, decision, names, requests, epoch):
        devices += 1
        yield devices_judged
    for nodes_judged in build_node_records(common_fields, decision, names, is_placed=not error):
        nodes += 1
        yield nodes_judged
    # Last, with the counts of the records before it: a reader who has fewer knows that some are missing.
    yield AttemptConcluded.model_construct(
        **common_fields,
        ended_at=ended_at,
        requests=requests,
        requests_left_out=0,
        constraints=circumstances.constraints,
        description=circumstances.description,
        settings_digest=circumstances.settings_digest,
        node_policy=decision.node_policy,
        device_policy=decision.device_policy,
        offered_nodes=len(decision.node_names),
        judged_nodes=len(decision.node_names),
        judged_devices=sum(len(judgement.verdict) for judgement in decision.judgements),
        device_records=devices,
        node_records=nodes,
        chosen=None if error else decision.chosen,
        picked=[] if error else list_picked_devices(decision, requests),
        error=error,
        refused_nodes={},
    )


def build_unchanged(attempt: AttemptRef, repeats: AttemptRef, ended_at: datetime) -> AttemptUnchanged:
    """Build the one event about a decision of which everything else equals that of the attempt ``repeats``."""
    return AttemptUnchanged.model_construct(
        **attempt.common_fields, ended_at=ended_at, repeats=repeats.id, repeats_started_at=repeats.started_at
    )


def build_failure(
    attempt: AttemptRef,
    failed: Failed,
    offered_nodes: int,
    ended_at: datetime,
    circumstances: Circumstances = _NOT_KNOWN,
) -> AttemptConcluded:
    """Build the conclusion of an attempt that ended before any node was judged."""
    return AttemptConcluded.model_construct(
        **attempt.common_fields,
        ended_at=ended_at,
        requests=[to_request(container) for container in failed.containers],
        requests_left_out=failed.left_out,
        constraints=circumstances.constraints,
        description=circumstances.description,
        settings_digest=circumstances.settings_digest,
        offered_nodes=offered_nodes,
        judged_nodes=0,
        judged_devices=0,
        device_records=0,
        node_records=0,
        picked=[],
        error=failed.error,
        refused_nodes={},
    )


def build_bind(
    attempt: AttemptRef, node: str, error: str, bind_started_at: datetime, ended_at: datetime, lock: str = ""
) -> BindConcluded:
    """Build the conclusion of a bind.

    error: empty where the pod was bound. lock: the node's, where another pod held it and it was read.
    """
    return BindConcluded(
        **attempt.common_fields,
        node=node,
        bound=not error,
        error=error,
        lock_holder=_parse_holder(lock) if lock or node_lock.is_contention(error) else None,
        bind_started_at=bind_started_at,
        ended_at=ended_at,
    )


def _parse_holder(text: str) -> LockHolder:
    try:
        lock = node_lock.parse_lock(text)
    # The bind ended with it as it stands on the node, and may be of a form that is written by hand.
    except NodeLockError:
        return LockHolder()
    # The contract has no time before 1970; the old form of a lock names no pod.
    locked_at = lock.since if lock.since.year >= 1970 else None
    return LockHolder(pod="/".join(lock.owner) if all(lock.owner) else "", locked_at=locked_at)


def to_request(request: VendorRequest) -> Request:
    """Convert a container's request to the contract's: memory as MiB or as a percentage, never both."""
    if not request.asks:
        return Request(container=request.name, init=request.is_init)
    # HAMi's rule: where MiB are named, they count and the percentage does not.
    takes_share = request.memory_mib <= 0 and request.memory_percentage < UNSET_PERCENT
    return Request(
        container=request.name,
        init=request.is_init,
        vendor=request.vendor,
        count=min(request.count, INT64_MAX),
        memory_mib=None if takes_share else _clamp(request.memory_mib),
        memory_percent=_clamp(request.memory_percentage) if takes_share else None,
        cores_percent=_clamp(request.cores),
    )


def _clamp(number: int) -> int:
    # A pod may name any whole number, also a negative one; the contract's numbers are from 0 to 2^63 - 1.
    return min(max(number, 0), INT64_MAX)
