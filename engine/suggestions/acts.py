"""What an administrator can do, and which pods have to end, so that a pod fits. Each is proved by the fit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.fit.devices.pod_usage import PodUse
from engine.fit.devices.quota import UNLIMITED
from engine.fit.judge.decision import Allocation
from engine.fit.judge.fitting_nodes import growing_runs
from engine.suggestions.ask import Ask
from engine.suggestions.search import nodes_that_fit, suggestion
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import FLAGS, Trial, rows_where

Holders = Mapping[str, Mapping[str, PodUse]]
"""Node to what its pods hold, by uid."""
MAX_NODES: Final = 20
"""How many nodes are tried on which pods could end: those with the least memory in use."""
_FIRST_RUN: Final = 128
"""How many of the nodes with the least memory in use are judged first; four times as many each time after."""


def administrators_acts(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    """Devices to uncordon or to heal, and a larger quota."""
    for constraint, column, value, word in FLAGS:
        decision = trial.decide_without(ask, constraint)
        if decision is None or decision.chosen is None:
            continue
        node = decision.chosen
        kept_out = rows_where(trial.columns, node, column, value=value)
        needed = list(kept_out)
        for row in kept_out:
            fewer = [other for other in needed if other != row]
            with trial.with_flags(column, fewer, value=not value):
                if trial.fits(ask, names=[node]):
                    needed = fewer
        with trial.with_flags(column, needed, value=not value):
            proved = trial.decide(ask)
        if proved and needed:
            edits = [Edit(constraint, _uuid(trial, node, row), word, "") for row in needed]
            yield suggestion(edits, proved)
    yield from _quota(trial, ask)


def _uuid(trial: Trial, node: str, row: int) -> str:
    entry = trial.columns.entry(node)
    return entry.fragment.uuids[row - entry.start] if entry else ""


def _quota(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    decision = trial.decide_without(ask, "quota")
    if decision is None or decision.allocation is None:
        return
    namespace, quotas, edits = ask.namespace, trial.columns.quotas, []
    raised = {name: dict(limits) for name, limits in quotas.limits.get(namespace, {}).items()}
    for vendor in ask.asked_vendors():
        left = quotas.left(namespace, vendor)
        memory_mib, cores = _taken(decision.allocation, ask, vendor.word)
        unit = max(vendor.amounts.memory_unit_mib, 1)
        short = (
            (vendor.resources.memory, left.memory_mib, -(-(memory_mib - left.memory_mib) // unit)),
            (vendor.resources.cores, left.cores, cores - left.cores),
        )
        for resource, amount_left, missing in short:
            if amount_left < UNLIMITED and missing > 0:
                for limits in raised.values():
                    if resource in limits:
                        edits.append(Edit("quota", resource, str(limits[resource]), str(limits[resource] + missing)))
                        limits[resource] += missing
    with trial.with_quotas(replace(quotas, limits={**quotas.limits, namespace: {**raised}})):
        proved = trial.decide(ask)
    if proved and edits:
        yield suggestion(edits, proved)


def _taken(allocation: Allocation, ask: Ask, vendor: str) -> tuple[int, int]:
    """MiB and percent that count against a quota: init containers end before the others begin."""
    sums = {True: [(0, 0)], False: [(0, 0)]}
    for request, grants in zip(ask.requests, allocation.containers, strict=True):
        own = [grant for grant in grants if grant.type == vendor]
        sums[request.is_init].append((sum(grant.memory_mib for grant in own), sum(grant.cores for grant in own)))
    apps = tuple(sum(column) for column in zip(*sums[False], strict=True))
    inits = tuple(max(column) for column in zip(*sums[True], strict=True))
    return max(apps[0], inits[0]), max(apps[1], inits[1])


def nodes_to_empty(trial: Trial, ask: Ask) -> list[str]:
    """Nodes that the pod would fit without the pods on them, those with the least memory in use first."""
    columns, found = trial.columns, list[str]()
    could = trial.could_fit(ask, ["use"])
    in_use = dict(zip(could, columns.nodes["used_memory"][columns.ids(could)].tolist(), strict=True))
    left = sorted(could, key=lambda node: (in_use[node], node))
    for run in growing_runs(len(left), _FIRST_RUN):
        decision = trial.decide(ask, ["use"], left[run])
        fitting = set(nodes_that_fit(decision)) if decision else set()
        found += [node for node in left[run] if node in fitting]
        if len(found) >= MAX_NODES:
            break
    return found[:MAX_NODES]


def pods_to_end(trial: Trial, ask: Ask, holders_on: Holders) -> Iterator[Suggestion]:
    """The fewest pods of one node whose end would let the pod in."""
    # The smallest first: what stays needed at the end are then the larger pods, and as few as can be.
    order = {
        node: sorted(holders, key=lambda uid: (_amount(holders[uid]), uid)) for node, holders in holders_on.items()
    }
    needed = {node: order[node] for node in _fitting_without(trial, ask, holders_on, order)}
    # All nodes at once, because what ends on one of them changes nothing on another.
    for turn in range(max(map(len, needed.values()), default=0)):
        fewer = {
            node: [uid for uid in uids if uid != order[node][turn]]
            for node, uids in needed.items()
            if turn < len(order[node])
        }
        needed |= {node: fewer[node] for node in _fitting_without(trial, ask, holders_on, fewer)}
    memory = {node: sum(_amount(holders_on[node][uid])[0] for uid in uids) for node, uids in needed.items()}
    found = [(len(uids), memory[node], node) for node, uids in needed.items() if uids]
    for _, _, node in sorted(found)[:1]:
        uses = [holders_on[node][uid] for uid in needed[node]]
        with trial.without_pods(uses):
            proved = trial.decide(ask)
        if proved:
            edits = [_end_of(uid, use) for uid, use in zip(needed[node], uses, strict=True)]
            yield suggestion(edits, proved)


def _fitting_without(trial: Trial, ask: Ask, holders_on: Holders, ended: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes on which the pod fits if these pods of each of them end. ended: node to uids."""
    with trial.without_pods([holders_on[node][uid] for node, uids in ended.items() for uid in uids]):
        decision = trial.decide(ask, names=list(ended))
    return nodes_that_fit(decision) if decision else []


def _amount(use: PodUse) -> tuple[int, int]:
    shares = use.by_uuid.values()
    return sum(share.memory_mib for share in shares), sum(share.cores for share in shares)


def _end_of(uid: str, use: PodUse) -> Edit:
    (memory_mib, cores), count = _amount(use), len(use.by_uuid)
    devices = "1 device" if count == 1 else f"{count} devices"
    return Edit(
        "use",
        uid,
        f"{memory_mib:,} MiB and {cores} % cores on {devices} of {use.node}",
        "",
        before_zh=f"{use.node} 上 {count} 块设备的 {memory_mib:,} MiB 显存和 {cores} % 算力",
    )
