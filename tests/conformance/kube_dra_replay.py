"""Replays recorded attempts of kube-scheduler 1.36.3 at pods with claims (DRA), down to each device's facts.

The clock of the recorded clusters stands after every time in them, so that a binding that waits is overdue.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from engine.claims.allocated import add_shares
from engine.claims.cel.selector import Truth
from engine.claims.device_facts import DeviceFacts, SelectorOutcome, collect_facts
from engine.claims.filter_plugin import ClaimsPlugin
from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import collect_claims
from engine.claims.pools import collect_pools, matches_node, reaches_node
from engine.claims.slices import Pool, PoolState, Slice, SliceDevice
from engine.filters.judge import judge
from engine.filters.verdicts import StatusCode
from engine.snapshot.fields import RejectedObject
from engine.snapshot.pods import read_pod
from engine.snapshot.reading import read_snapshot
from engine.snapshot.requests import request_to_place
from engine.snapshot.snapshot import Snapshot
from tests.conformance.difference import Case, Difference
from tests.conformance.kube_filter_replay import (
    compare_amounts,
    compare_attempt,
    compare_message,
    compare_nodes,
    differ,
    read_release,
)

NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)

_ERROR_PREFIX: Final = 'running "DynamicResources" filter plugin: '
_TRUTHS: Final = {Truth.TRUE: True, Truth.FALSE: False}
_ERRORS: Final = {Truth.RUN_ERROR: "run", Truth.COMPILE_ERROR: "compile", Truth.UNJUDGED: "unjudged"}


def compare_kube_dra(case: Case) -> Iterator[Difference]:
    """Yield every fact of an attempt in which ours differs from kube-scheduler's."""
    snapshot = read_snapshot([*case["nodes"], *case["pods"], *case["objects"]])
    release, expected = read_release(case), case["expected"]
    inventory = read_inventory(snapshot, select_gates(release))
    for rejected in (*snapshot.rejected.values(), *inventory.rejected):
        yield Difference("", "object", rejected.to_sentence(), "read")
    plugin = ClaimsPlugin(inventory, now=NOW)
    judgement = judge(snapshot, case["pod"], release=release, devices=plugin, alone=True)
    if isinstance(judgement, RejectedObject):
        yield Difference("", "pod", judgement.to_sentence(), "read")
        return
    yield from compare_amounts(snapshot, judgement, expected)
    yield from compare_attempt(judgement, expected)
    if "nodes" in expected:
        yield from compare_nodes(judgement, expected)
    yield from compare_message(judgement, expected)
    if "dra" in expected:
        yield from compare_claims(snapshot, inventory, case)


def compare_claims(snapshot: Snapshot, inventory: Inventory, case: Case) -> Iterator[Difference]:
    """Compare DynamicResources by itself: claims, allocations, pools and devices."""
    expected = case["expected"]["dra"]
    pod_claims = collect_claims(inventory, read_pod(case["pod"]), request_to_place(case["pod"]))
    claims_judge = ClaimsJudge(inventory, pod_claims, now=NOW)
    if pod_claims.pre_filter is None:
        yield from differ("", {"to allocate": (list(pod_claims.to_allocate), expected.get("to_allocate", []))})
        for name, state in expected.get("nodes", {}).items():
            yield from compare_node(claims_judge, snapshot, name, state)
    for name, pools in expected.get("pools", {}).items():
        ours = [to_pool(pool) for pool in collect_pools(inventory, snapshot.nodes[name].node)]
        yield from differ(name, {"pools": ([pool for pool in ours if pool], [drop_empty(pool) for pool in pools])})
    devices = dict(list_devices(snapshot, claims_judge))
    for name, device in expected.get("devices", {}).items():
        yield from differ("", {f"device {name}": (devices.get(name), sort_lists(device))})


def compare_node(
    claims_judge: ClaimsJudge, snapshot: Snapshot, name: str, state: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare the verdict on a node, and the devices that the claims get there."""
    node = snapshot.nodes[name].node
    verdict = claims_judge.judge(node)
    refusal = verdict.refusal
    prefix = _ERROR_PREFIX if refusal and refusal.code is StatusCode.ERROR else ""
    ours = (refusal.code.value, [prefix + reason for reason in refusal.reasons]) if refusal else ("", [])
    yield from differ(
        name, {"claims": ((*ours, verdict.unjudged), (state.get("code", ""), state.get("reasons", []), ""))}
    )
    if "allocated" in state and not refusal:
        allocations = {
            allocation.claim: [
                (
                    device.request,
                    (device.driver, device.pool, device.device),
                    {capacity: str(amount) for capacity, amount in device.consumed.items()},
                    device.has_admin_access,
                )
                for device in allocation.devices
            ]
            for allocation in claims_judge.allocate(node)
        }
        yield from differ(name, {"allocated": (allocations, read_allocations(state["allocated"]))})


def read_allocations(allocated: Mapping[str, Any]) -> dict[str, object]:
    """Read the devices of each claim with the capacity that they take."""
    return {
        claim: [
            (
                device["request"],
                (device["driver"], device["pool"], device["device"]),
                device.get("consumedCapacity", {}),
                device.get("adminAccess", False),
            )
            for device in allocation["devices"].get("results", ())
        ]
        for claim, allocation in allocated.items()
    }


def to_pool(pool: Pool) -> dict[str, object]:
    """Write a pool as it is recorded; outdated ones are not."""
    if pool.state is PoolState.OUTDATED:
        return {}
    return drop_empty(
        {
            "pool": pool.title,
            "slices": [slice_.name for slice_ in pool.slices],
            "incomplete": pool.state is PoolState.INCOMPLETE,
            "invalid": pool.cause,
        }
    )


def list_devices(snapshot: Snapshot, claims_judge: ClaimsJudge) -> Iterator[tuple[str, dict[str, object]]]:
    """List the facts of every device of every slice, old generations too, under the names of the recording."""
    inventory = claims_judge.inventory
    for slices in inventory.slices.of_pool.values():
        names = [device.name for slice_ in slices for device in slice_.devices]
        for slice_ in slices:
            for device in slice_.devices:
                origin = f"@{slice_.name}" if names.count(device.name) > 1 else ""
                yield (
                    f"{slice_.driver}/{slice_.pool}/{device.name}{origin}",
                    describe_device(snapshot, claims_judge, slice_, device),
                )


def describe_device(
    snapshot: Snapshot, claims_judge: ClaimsJudge, slice_: Slice, device: SliceDevice
) -> dict[str, object]:
    """Write the facts of a device as they are recorded."""
    inventory = claims_judge.inventory
    device_id = slice_.driver, slice_.pool, device.name
    shares = add_shares(inventory.allocated.shares.get(device_id, ()))
    facts = {
        f"{claim.name}/{request.full_name}": to_facts(
            collect_facts(inventory, claims_judge.matcher, claim.title, request, slice_, device), request.class_name
        )
        for claim in claims_judge.pod_claims.unallocated
        for group in claim.spec.groups
        for request in group.choices
    }
    return drop_empty(
        {
            "slice": slice_.name,
            "nodes": sorted(
                name
                for name, node in snapshot.nodes.items()
                if (
                    reaches_node(inventory, slice_, device, node.node)
                    if slice_.selects_per_device
                    else matches_node(node.node, slice_.node_name, slice_.is_for_all_nodes, slice_.node_selector)
                )
            ),
            "in_use": inventory.allocated.find_holder(device_id) is not None,
            "capacity_used": {name: str(amount) for name, amount in shares.items()},
            "requests": facts,
        }
    )


def to_facts(facts: DeviceFacts, class_name: str) -> dict[str, object]:
    """Write the facts of a device for one request as they are recorded."""
    written = drop_empty(
        {
            "class": [to_outcome(outcome) for outcome in facts.of_class],
            "selectors": [to_outcome(outcome) for outcome in facts.of_request],
            "untolerated_taints": sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in facts.taints),
            "class_missing": class_name if facts.is_class_missing else "",
        }
    )
    if facts.shortage:
        is_undefined = facts.shortage.is_undefined
        written["capacity"] = "some requested capacity has not been defined" if is_undefined else False
    return written


def to_outcome(selector: SelectorOutcome) -> bool | str:
    outcome = selector.outcome
    if outcome.truth in _TRUTHS:
        return _TRUTHS[outcome.truth]
    return f"{_ERRORS[outcome.truth]}: {outcome.text}"


def drop_empty(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value}


def sort_lists(device: Mapping[str, Any]) -> dict[str, object]:
    """Sort what kube-scheduler lists in any order: nodes, and the taints of several rules."""
    requests = {
        request: facts | {"untolerated_taints": sorted(facts["untolerated_taints"])}
        if "untolerated_taints" in facts
        else facts
        for request, facts in device.get("requests", {}).items()
    }
    return drop_empty({**device, "nodes": sorted(device.get("nodes") or ()), "requests": requests})
