"""Suggestions that need an administrator, and pods whose end lets a pod in. The fit proves each of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.fit.devices.pod_usage import PodUse
from engine.fit.devices.quota import UNLIMITED
from engine.fit.judge.decision import Allocation
from engine.fit.judge.fitting_nodes import cut_growing_runs
from engine.suggestions.ask import Ask
from engine.suggestions.search import build_suggestion, list_fitting_nodes
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import FLAGS, Trial, find_rows

Holders = Mapping[str, Mapping[str, PodUse]]
"""Uses of a node's pods: node to uid to use."""
MAX_NODES: Final = 20
"""Limit of the nodes whose pods could end: the ones with the least memory in use are tried."""
_FIRST_RUN: Final = 128
"""Number of nodes, those with the least memory in use, that are judged first; four times as many each time after."""


def suggest_administrator_acts(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    """Suggest devices to uncordon or to heal, and a larger quota."""
    for constraint, column, value, word in FLAGS:
        decision = trial.decide_without(ask, constraint)
        if decision is None or decision.chosen is None:
            continue
        node = decision.chosen
        kept_out = find_rows(trial.columns, node, column, value=value)
        needed = list(kept_out)
        for row in kept_out:
            fewer = [other for other in needed if other != row]
            with trial.with_flags(column, fewer, value=not value):
                if trial.fits(ask, names=[node]):
                    needed = fewer
        with trial.with_flags(column, needed, value=not value):
            proved = trial.decide(ask)
        if proved and needed:
            edits = [Edit(constraint, _get_uuid(trial, node, row), word, "") for row in needed]
            yield build_suggestion(edits, proved)
    yield from _suggest_quota(trial, ask)


def _get_uuid(trial: Trial, node: str, row: int) -> str:
    entry = trial.columns.get_entry(node)
    return entry.fragment.uuids[row - entry.start] if entry else ""


def _suggest_quota(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    decision = trial.decide_without(ask, "quota")
    if decision is None or decision.allocation is None:
        return
    namespace, quotas, edits = ask.namespace, trial.columns.quotas, []
    raised = {name: dict(limits) for name, limits in quotas.limits.get(namespace, {}).items()}
    for vendor in ask.list_vendors():
        left = quotas.compute_left(namespace, vendor)
        memory_mib, cores = _sum_granted(decision.allocation, ask, vendor.word)
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
        yield build_suggestion(edits, proved)


def _sum_granted(allocation: Allocation, ask: Ask, vendor: str) -> tuple[int, int]:
    """Sum MiB and percent that count against a quota: init containers end before the others begin."""
    sums = {True: [(0, 0)], False: [(0, 0)]}
    for request, grants in zip(ask.requests, allocation.containers, strict=True):
        vendor_grants = [grant for grant in grants if grant.type == vendor]
        sums[request.is_init].append(
            (sum(grant.memory_mib for grant in vendor_grants), sum(grant.cores for grant in vendor_grants))
        )
    apps = tuple(sum(column) for column in zip(*sums[False], strict=True))
    inits = tuple(max(column) for column in zip(*sums[True], strict=True))
    return max(apps[0], inits[0]), max(apps[1], inits[1])


def list_nodes_to_empty(trial: Trial, ask: Ask) -> list[str]:
    """List nodes that the pod would fit without the pods on them, the ones with the least memory in use first."""
    columns, nodes = trial.columns, list[str]()
    could = trial.list_candidates(ask, ["use"])
    in_use = dict(zip(could, columns.nodes["used_memory"][columns.look_up_ids(could)].tolist(), strict=True))
    left = sorted(could, key=lambda node: (in_use[node], node))
    for run in cut_growing_runs(len(left), _FIRST_RUN):
        decision = trial.decide(ask, ["use"], left[run])
        fitting = set(list_fitting_nodes(decision)) if decision else set()
        nodes += [node for node in left[run] if node in fitting]
        if len(nodes) >= MAX_NODES:
            break
    return nodes[:MAX_NODES]


def suggest_pods_to_end(trial: Trial, ask: Ask, holders_on: Holders) -> Iterator[Suggestion]:
    """Suggest the fewest pods of one node whose end would let the pod in."""
    # The smallest are tried first: so the pods that remain needed are larger, and as few as possible.
    order = {
        node: sorted(holders, key=lambda uid: (_sum_use(holders[uid]), uid)) for node, holders in holders_on.items()
    }
    needed = {node: order[node] for node in _list_fitting_without(trial, ask, holders_on, order)}
    # All nodes are judged at once, because the end of a pod on one node changes nothing on another.
    for turn in range(max(map(len, needed.values()), default=0)):
        fewer = {
            node: [uid for uid in uids if uid != order[node][turn]]
            for node, uids in needed.items()
            if turn < len(order[node])
        }
        needed |= {node: fewer[node] for node in _list_fitting_without(trial, ask, holders_on, fewer)}
    memory = {node: sum(_sum_use(holders_on[node][uid])[0] for uid in uids) for node, uids in needed.items()}
    ranked = [(len(uids), memory[node], node) for node, uids in needed.items() if uids]
    for _, _, node in sorted(ranked)[:1]:
        uses = [holders_on[node][uid] for uid in needed[node]]
        with trial.without_pods(uses):
            proved = trial.decide(ask)
        if proved:
            edits = [_to_end_edit(uid, use) for uid, use in zip(needed[node], uses, strict=True)]
            yield build_suggestion(edits, proved)


def _list_fitting_without(trial: Trial, ask: Ask, holders_on: Holders, ended: Mapping[str, Sequence[str]]) -> list[str]:
    """List the nodes on which the pod fits if these pods of each of them end. ended: node to uids."""
    with trial.without_pods([holders_on[node][uid] for node, uids in ended.items() for uid in uids]):
        decision = trial.decide(ask, names=list(ended))
    return list_fitting_nodes(decision) if decision else []


def _sum_use(use: PodUse) -> tuple[int, int]:
    shares = use.by_uuid.values()
    return sum(share.memory_mib for share in shares), sum(share.cores for share in shares)


def _to_end_edit(uid: str, use: PodUse) -> Edit:
    (memory_mib, cores), count = _sum_use(use), len(use.by_uuid)
    devices = "1 device" if count == 1 else f"{count} devices"
    return Edit(
        "use",
        uid,
        f"{memory_mib:,} MiB and {cores} % cores on {devices} of {use.node}",
        "",
        before_zh=f"{use.node} 上 {count} 个设备的 {memory_mib:,} MiB 显存和 {cores} % 算力",
    )
