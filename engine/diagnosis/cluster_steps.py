"""Questions about what the pod needs from the cluster: quotas, open nodes, registered devices."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, NodeFacts, Quota
from engine.diagnosis.open_nodes import Closed, find_closing_check, is_selected
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import (
    NOTHING,
    count_devices,
    describe_duration,
    describe_share,
    get_requests,
    get_scheduler,
    shorten_list,
)
from engine.hami.node_checks import HANDSHAKE_DELETED, HANDSHAKE_TOO_OLD, REGISTRATION_MISSING, is_deleted
from engine.hami.quantities import parse_whole
from runtime.kubernetes.object_fields import Fields, get_object
from schemas.events import NodeProblem, Request

HAMI_SCHEDULERS: Final = ("hami", "4pd")
"""Parts of the names that HAMi's scheduler has had."""
_READERS_OF_REGISTRATIONS: Final = ("HAMi", "schedulerlog")
_MARK: Final = "hami.io/"
MAX_EVIDENCE: Final = 5
"""Limit of the nodes that a step shows; the answer counts all."""


def check_quotas(facts: DiagnosisFacts) -> TreeStep:
    """Check the quotas: they matter if the scheduler counts them itself, because the API server has admitted the pod
    already."""
    if facts.quotas is None:
        return TreeStep("QuotaLeft", "not known", (), facts.select_unknown("quotas"))
    full = [exhausted for quota in facts.quotas for exhausted in _iterate_exhausted(quota)]
    evidence = [quota.source for quota in facts.quotas] if not full else [quota.source for quota, *_ in full]
    numbers = {
        f"{name}.{field}": amount
        for _, name, *amounts in full
        for field, amount in zip(("used", "hard"), amounts, strict=True)
    }
    exhausted_evidence = [
        Evidence(source.kind, source.record, source.time, source.reported_by, numbers) for source in evidence
    ]
    return TreeStep("QuotaLeft", "no" if full else "yes", exhausted_evidence)


def _iterate_exhausted(quota: Quota) -> Iterator[tuple[Quota, str, int, int]]:
    for name, amount in quota.hard.items():
        hard, used = parse_whole(amount), parse_whole(quota.used.get(name, "0"))
        if hard is not None and used is not None and used >= hard:
            yield quota, name, used, hard


def find_closed_nodes(facts: DiagnosisFacts, judged: Iterable[str] = ()) -> dict[str, Closed]:
    """Find the nodes that kube-scheduler's own checks refuse now, without nodes that a scheduler of devices has
    judged."""
    spec = facts.pod.spec if facts.pod and facts.is_latest else None
    if spec is None or not facts.nodes:
        return {}
    names = frozenset(judged)
    return {
        state.name: closed
        for state in _list_observed(facts)
        if state.name not in names and (closed := find_closing_check(spec, state))
    }


def _list_observed(facts: DiagnosisFacts) -> list[NodeFacts]:
    return [state for state in facts.nodes or () if state.node is not None]


def check_open_nodes(facts: DiagnosisFacts, closed: Mapping[str, Closed], *, is_judged: bool = False) -> TreeStep:
    """Check whether a node is open to the pod.

    ``is_judged``: a scheduler has refused the other nodes. Without it a single open node leaves no obstacle here.
    """
    nodes = _list_observed(facts)
    spec = facts.pod.spec if facts.pod else None
    if spec is None or not nodes:
        return TreeStep("NodesOpen", "not known", (), facts.select_unknown("nodes", "pod"))
    closed_states = [state for state in nodes if state.name in closed][:MAX_EVIDENCE]
    evidence = [
        Evidence("node", node.source.record, node.source.time, words=_describe_closed(closed[node.name]))
        for node in closed_states
    ]
    is_open = len(closed) < len(nodes)
    selected = [state for state in nodes if is_selected(spec, state)]
    obstacles = [] if is_open and not is_judged else _list_closed_obstacles(spec, nodes, selected, closed)
    return TreeStep("NodesOpen", to_answer(is_open), evidence, facts.select_unknown("nodes"), obstacles)


def _describe_closed(closed: Closed) -> str:
    return f"{closed.code}: {closed.taint}" if closed.taint else closed.code


def _list_closed_obstacles(
    spec: Fields, nodes: Sequence[NodeFacts], selected: Sequence[NodeFacts], closed: Mapping[str, Closed]
) -> list[FoundObstacle]:
    # The pod's selector excludes nodes on purpose: the obstacle is what closes the nodes that it selects. A selector
    # that excludes every node is the obstacle itself, whatever else closes some of them.
    candidates = selected or nodes
    if not selected:
        closed = {state.name: Closed("AffinityMismatch") for state in nodes}
    kind = write_phrase("selected") if len(selected) < len(nodes) and selected else NOTHING
    obstacles = []
    for code in sorted({closed[state.name].code for state in candidates if state.name in closed}):
        states = [state for state in candidates if state.name in closed and closed[state.name].code == code]
        taints = sorted({closed[state.name].taint for state in states if closed[state.name].taint})
        words: dict[str, Word] = {"refused": len(states), "share": describe_share(len(states), len(candidates), kind)}
        words["taints"] = shorten_list(taints)
        numbers = {"nodes": len(states), "of_nodes": len(candidates)}
        names = sorted(state.name for state in states)
        evidence = [state.source for state in states[:MAX_EVIDENCE]]
        clauses = ["taints"] if taints else []
        if code == "AffinityMismatch" and (selector := get_object(spec, "nodeSelector")):
            words["selector"] = shorten_list([f"{label}={value}" for label, value in selector.items()])
            clauses.append("selector")
        obstacles.append(FoundObstacle(code, words, numbers, names, len(names), evidence, clauses))
    return obstacles


def check_registered_devices(facts: DiagnosisFacts, unregistered: Collection[str] | None = None) -> TreeStep | None:
    """Check ``unregistered``, the nodes of an attempt, else all nodes. None if the pod requests no devices."""
    requests = get_requests(facts)
    if requests is not None and not count_devices(requests):
        return None
    # Only HAMi's schedulers read registrations: the devices of other clusters need none.
    if unregistered is None and not _is_hami_used(facts, requests or ()):
        return None
    states = [state for state in facts.nodes or () if unregistered is None or state.name in unregistered]
    unknown = facts.select_unknown("registrations", "nodes")
    if not states:
        return TreeStep("DevicesRegistered", "not known" if unregistered is None else "no", (), unknown)
    blocked = [(state, list(filter(is_blocking, state.problems or ()))) for state in states]
    # A node's first problem causes its others: a missing registration can't be read either.
    first_problems = [(state, problems[0]) for state, problems in blocked if problems]
    obstacles = _list_registration_obstacles(first_problems, facts)
    registered = [state for state in states if state.devices]
    if not registered and not obstacles and unregistered is None:
        words: dict[str, Word] = {"of": len(states)}
        obstacles = [FoundObstacle("NoDevicesRegistered", words, {"nodes": len(states)}, evidence=[states[0].source])]
    problem_evidence = [_to_problem_evidence(state, problem) for state, problem in first_problems[:MAX_EVIDENCE]]
    counted = {
        "nodes": len(states),
        "nodes_with_devices": len(registered),
        "devices": sum(state.devices or 0 for state in states),
    }
    first = states[0].source
    summary = Evidence("nodes", first.record if len(states) == 1 else "", first.time, first.reported_by, counted)
    is_registered = bool(registered) and not unregistered
    return TreeStep("DevicesRegistered", to_answer(is_registered), [summary, *problem_evidence], unknown, obstacles)


def _is_hami_used(facts: DiagnosisFacts, requests: Sequence[Request]) -> bool:
    """Tell whether a scheduler that reads HAMi's registrations places the pod, or a node has its marks."""
    if any(request.memory_mib or request.cores_percent for request in requests):
        return True
    if any(word in get_scheduler(facts) for word in HAMI_SCHEDULERS):
        return True
    if any(scheduler.implementation in _READERS_OF_REGISTRATIONS for scheduler in facts.schedulers or ()):
        return True
    return any(
        state.devices
        or state.node is None
        or any(_MARK in key for key in get_object(state.node, "metadata", "annotations"))
        for state in facts.nodes or ()
    )


def _to_problem_evidence(state: NodeFacts, problem: NodeProblem) -> Evidence:
    source = state.source
    return Evidence("node", source.record, source.time, source.reported_by, words=f"{problem.code}: {problem.message}")


def is_blocking(problem: NodeProblem) -> bool:
    """Tell whether the problem keeps the node's devices from use.

    Device plugins since HAMi v2.8 leave the scheduler's question unanswered, and their devices are used all the same
    as long as the kubelet offers them, unless the scheduler has given the node up.
    """
    is_unanswered = problem.code == HANDSHAKE_TOO_OLD and problem.is_asked and problem.allocatable
    return is_deleted(problem.handshake) or not is_unanswered


def _list_registration_obstacles(
    first_problems: Iterable[tuple[NodeFacts, NodeProblem]], facts: DiagnosisFacts
) -> list[FoundObstacle]:
    by_code: dict[str, list[tuple[NodeFacts, NodeProblem]]] = {}
    for state, problem in first_problems:
        is_given_up = problem.code == HANDSHAKE_TOO_OLD and is_deleted(problem.handshake)
        by_code.setdefault(HANDSHAKE_DELETED if is_given_up else problem.code, []).append((state, problem))
    obstacles = []
    for code, pairs in by_code.items():
        names = sorted({state.name for state, _ in pairs})
        words: dict[str, Word] = {"refused": len(names), "nodes": shorten_list(names)}
        evidence = [_to_problem_evidence(state, problem) for state, problem in pairs[:MAX_EVIDENCE]]
        clauses = []
        aged = [(problem.handshake_at, state.name) for state, problem in pairs if problem.handshake_at]
        if code == HANDSHAKE_DELETED:
            words |= {"handshake": pairs[0][1].handshake}
        if code == HANDSHAKE_TOO_OLD and aged:
            oldest, node = min(aged)
            words |= {"age": describe_duration(facts.now - oldest), "node": node}
            clauses = ["age"]
        if code == REGISTRATION_MISSING and (
            slots := [problem.allocatable for _, problem in pairs if problem.allocatable]
        ):
            words |= {"slots": max(slots)}
            clauses = ["slots"]
        obstacles.append(FoundObstacle(code, words, {"nodes": len(names)}, names, len(names), evidence, clauses))
    return obstacles
