"""Contradictions that the summary of an attempt shows by itself: pure.

=====================  =================================================================================
``Imbalance``          the judged devices or nodes and the published ones do not add up
``Overcommitted``      the scheduler allocated more of a device than was left, by its own numbers
``BoundElsewhere``     the pod was bound to a node that the filter had not chosen
``BoundWithoutChoice`` a bind, although the filter found no node
=====================  =================================================================================
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from schemas.events import AttemptSummarized, FindingReported, PickedDevice

IMBALANCE: Final = "Imbalance"
OVERCOMMITTED: Final = "Overcommitted"
BOUND_ELSEWHERE: Final = "BoundElsewhere"
BOUND_WITHOUT_CHOICE: Final = "BoundWithoutChoice"

_LARGEST: Final = 2**63 - 1


def audit_attempt(summary: AttemptSummarized) -> list[FindingReported]:
    """Find the contradictions of a summary; versions of it with the same facts give the same findings."""
    return [*_audit_balance(summary), *_audit_devices(summary), *_audit_bind(summary)]


def _audit_balance(summary: AttemptSummarized) -> Iterator[FindingReported]:
    balance = summary.balance
    if balance is None or not balance.missing:
        return
    numbers = {
        "judged_nodes": balance.judged_nodes,
        "published_nodes": sum(balance.nodes.values()),
        "judged_devices": balance.judged_devices,
        "published_devices": sum(sum(device.values()) for device in balance.devices),
        "dropped_devices": balance.dropped_devices,
    }
    yield _build_finding(summary, IMBALANCE, "", "", numbers, [balance.missing])


def _audit_devices(summary: AttemptSummarized) -> Iterator[FindingReported]:
    if _is_waiting(summary):
        return
    # One device may be picked for several containers of the pod: only their sum shows an overcommitment.
    taken: dict[str, list[PickedDevice]] = {}
    for device in summary.picked:
        taken.setdefault(device.uuid, []).append(device)
    for uuid, rows in taken.items():
        numbers = _list_exceeded(rows)
        if numbers:
            # KAI names no container.
            containers = ", ".join(filter(None, (_name_container(summary, row) for row in rows)))
            # The sentence and numbers must not depend on the order of records: the finding is written again with each
            # version.
            sentence = f"{summary.chosen} gave {uuid} to {summary.pod}" + (f" ({containers})" if containers else "")
            yield _build_finding(summary, OVERCOMMITTED, summary.chosen or "", uuid, numbers, [sentence])


def _name_container(summary: AttemptSummarized, device: PickedDevice) -> str:
    # A record may claim any position.
    is_requested = device.container < len(summary.requests)
    return summary.requests[device.container].container if is_requested else f"container {device.container}"


def _is_waiting(summary: AttemptSummarized) -> bool:
    """Tell whether the pod waits until other pods have left its node: then it holds no device yet."""
    is_bound = summary.bind is not None and summary.bind.bound
    return bool(summary.nominated) and summary.nominated == summary.chosen and not is_bound


def _list_exceeded(rows: Sequence[PickedDevice]) -> dict[str, int]:
    """Return total, use before and requested amount of each exceeded resource; empty if everything fits."""
    first = rows[0]
    memory = sum(row.memory_mib or 0 for row in rows)
    cores = sum(row.cores_percent for row in rows)
    over = [
        ("memory_{}_mib", first.memory_total_mib, first.memory_used_mib, memory),
        ("cores_{}_percent", first.cores_total_percent, first.cores_used_percent, cores),
        ("slots_{}", first.slots_total, first.slots_used, len(rows)),
    ]
    # A sum of what a record claims may need more than 64 bits, which no reader has.
    return {
        name.format(word): min(number, _LARGEST)
        for name, total, used, more in over
        # An attempt that takes nothing of a resource is not to blame for its overcommitment.
        if total is not None and used is not None and more > 0 and used + more > total
        for word, number in (("total", total), ("used", used), ("taken", more))
    }


def _audit_bind(summary: AttemptSummarized) -> Iterator[FindingReported]:
    bind = summary.bind
    # Without the filter's end its choice is unknown, because ``chosen`` is then copied from the bind itself.
    if bind is None or not bind.bound or summary.ended_at is None or bind.node == summary.chosen:
        return
    if summary.chosen is None and summary.fit_nodes:
        # A node fits, and its scheduler's words do not name the one that it chose.
        return
    if summary.chosen is None:
        sentence = f"the filter found no node, and {summary.pod} was bound to {bind.node}"
        yield _build_finding(summary, BOUND_WITHOUT_CHOICE, bind.node, "", {"fit_nodes": summary.fit_nodes}, [sentence])
    else:
        sentence = f"the filter chose {summary.chosen}, and {summary.pod} was bound to {bind.node}"
        yield _build_finding(summary, BOUND_ELSEWHERE, bind.node, "", {}, [sentence])


def _build_finding(
    summary: AttemptSummarized,
    finding: str,
    node: str,
    device: str,
    numbers: Mapping[str, int],
    evidence: Sequence[str],
) -> FindingReported:
    return FindingReported.model_construct(
        cluster=summary.cluster,
        attempt_id=summary.attempt_id,
        pod=summary.pod,
        scheduler=summary.scheduler,
        started_at=summary.started_at,
        finding=finding,
        # A part of the finding's id, so it comes from the attempt and never from the clock: a second audit must write
        # the same document.
        found_at=summary.ended_at or summary.started_at,
        node=node,
        device=device,
        numbers=dict(numbers),
        evidence=list(evidence),
        evidence_pods=[str(summary.pod)] * len(evidence),
    )
