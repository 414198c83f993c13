"""The questions about what the pod needs of the cluster: claims, quotas, open nodes, registered devices."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, NodeFacts, Quota
from engine.diagnosis.open_nodes import Closed, closed_by, is_selected
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, yes_or_no
from engine.diagnosis.texts import phrase
from engine.diagnosis.wording import NOTHING, devices_asked, listed, requests_of, share, span
from engine.hami.node_checks import HANDSHAKE_TOO_OLD
from engine.hami.quantities import parse_whole
from schemas.events import NodeProblem

MAX_EVIDENCE: Final = 5
"""Nodes that a step shows; the answer counts all."""


def claims_ready(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    claims = facts.claims
    if claims is None:
        yield TreeStep("ClaimsReady", "not known", (), facts.unknown_of("claims"))
        return
    found = []
    for claim in claims:
        words: dict[str, Word] = {"namespace": facts.namespace, "claim": claim.name, "phase": claim.phase}
        if not claim.phase:
            found.append(FoundObstacle("ClaimMissing", words, evidence=[claim.source], clauses=["claim"]))
        # A claim that waits for its pod to be scheduled is no obstacle, and one of an unknown class may be such.
        elif claim.phase == "Lost" or (claim.phase == "Pending" and claim.waits_for_pod is False):
            found.append(FoundObstacle("ClaimUnbound", words, evidence=[claim.source], clauses=["claim"]))
    evidence = [
        Evidence(claim.source.kind, claim.source.record, claim.source.at, words=claim.phase or "not found")
        for claim in claims
    ]
    yield TreeStep("ClaimsReady", "no" if found else "yes", evidence, facts.unknown_of("claims"), found)


def quota_left(facts: DiagnosisFacts) -> TreeStep:
    """Matters where the scheduler counts quotas itself: the API server has admitted the pod already."""
    if facts.quotas is None:
        return TreeStep("QuotaLeft", "not known", (), facts.unknown_of("quotas"))
    full = [found for quota in facts.quotas for found in _used_up(quota)]
    evidence = [quota.source for quota in facts.quotas] if not full else [quota.source for quota, *_ in full]
    numbers = {
        f"{name}.{what}": amount
        for _, name, *amounts in full
        for what, amount in zip(("used", "hard"), amounts, strict=True)
    }
    shown = [Evidence(source.kind, source.record, source.at, source.reported_by, numbers) for source in evidence]
    return TreeStep("QuotaLeft", "no" if full else "yes", shown)


def _used_up(quota: Quota) -> Iterator[tuple[Quota, str, int, int]]:
    for name, amount in quota.hard.items():
        hard, used = parse_whole(amount), parse_whole(quota.used.get(name, "0"))
        if hard is not None and used is not None and used >= hard:
            yield quota, name, used, hard


def closed_nodes(facts: DiagnosisFacts, judged: Iterable[str] = ()) -> dict[str, Closed]:
    """Why kube-scheduler's own checks refuse a node now; without nodes that a scheduler of devices has judged."""
    spec = facts.pod.spec if facts.pod and facts.is_latest else None
    if spec is None or not facts.nodes:
        return {}
    names = frozenset(judged)
    return {
        state.name: found for state in _objects(facts) if state.name not in names and (found := closed_by(spec, state))
    }


def _objects(facts: DiagnosisFacts) -> list[NodeFacts]:
    return [state for state in facts.nodes or () if state.node is not None]


def nodes_open(facts: DiagnosisFacts, closed: Mapping[str, Closed], *, is_judged: bool = False) -> TreeStep:
    """``is_judged``: a scheduler has refused the other nodes. Without it a single open node leaves no obstacle here."""
    nodes = _objects(facts)
    spec = facts.pod.spec if facts.pod else None
    if spec is None or not nodes:
        return TreeStep("NodesOpen", "not known", (), facts.unknown_of("nodes", "pod"))
    shown = [state for state in nodes if state.name in closed][:MAX_EVIDENCE]
    evidence = [Evidence("node", node.source.record, node.source.at, words=_why(closed[node.name])) for node in shown]
    is_open = len(closed) < len(nodes)
    selected = [state for state in nodes if is_selected(spec, state)]
    obstacles = [] if is_open and not is_judged else _closed_obstacles(nodes, selected, closed)
    return TreeStep("NodesOpen", yes_or_no(is_open), evidence, facts.unknown_of("nodes"), obstacles)


def _why(found: Closed) -> str:
    return f"{found.code}: {found.rest}" if found.rest else found.code


def _closed_obstacles(
    nodes: Sequence[NodeFacts], selected: Sequence[NodeFacts], closed: Mapping[str, Closed]
) -> list[FoundObstacle]:
    # What the pod's selector leaves out is left out on purpose: the obstacle is what closes the nodes that it selects.
    # A selector that leaves out every node is the obstacle itself, whatever else closes some of them.
    meant = selected or nodes
    if not selected:
        closed = {state.name: Closed("AffinityMismatch") for state in nodes}
    such = phrase("selected") if len(selected) < len(nodes) and selected else NOTHING
    obstacles = []
    for code in sorted({closed[state.name].code for state in meant if state.name in closed}):
        states = [state for state in meant if state.name in closed and closed[state.name].code == code]
        taints = sorted({closed[state.name].rest for state in states if closed[state.name].rest})
        words: dict[str, Word] = {"refused": len(states), "share": share(len(states), len(meant), such)}
        words["taints"] = listed(taints)
        numbers = {"nodes": len(states), "of_nodes": len(meant)}
        names = sorted(state.name for state in states)
        evidence = [state.source for state in states[:MAX_EVIDENCE]]
        clauses = ["taints"] if taints else []
        obstacles.append(FoundObstacle(code, words, numbers, names, len(names), evidence, clauses))
    return obstacles


def devices_registered(facts: DiagnosisFacts, unregistered: Collection[str] | None = None) -> TreeStep | None:
    """Looks at ``unregistered``, the nodes of an attempt, else at all. None where the pod asks for no devices."""
    requests = requests_of(facts)
    if requests is not None and not devices_asked(requests):
        return None
    states = [state for state in facts.nodes or () if unregistered is None or state.name in unregistered]
    unknown = facts.unknown_of("registrations", "nodes")
    if not states:
        return TreeStep("DevicesRegistered", "not known" if unregistered is None else "no", (), unknown)
    in_the_way = [(state, list(filter(is_in_the_way, state.problems or ()))) for state in states]
    # The first of a node is the cause of its others: a registration that is missing can't be read either.
    found = [(state, problems[0]) for state, problems in in_the_way if problems]
    obstacles = _registration_obstacles(found, facts)
    registered = [state for state in states if state.devices]
    if not registered and not obstacles and unregistered is None:
        words: dict[str, Word] = {"of": len(states)}
        obstacles = [FoundObstacle("NoDevicesRegistered", words, {"nodes": len(states)}, evidence=[states[0].source])]
    shown = [_of_problem(state, problem) for state, problem in found[:MAX_EVIDENCE]]
    counted = {
        "nodes": len(states),
        "nodes_with_devices": len(registered),
        "devices": sum(state.devices or 0 for state in states),
    }
    first = states[0].source
    summary = Evidence("nodes", first.record if len(states) == 1 else "", first.at, first.reported_by, counted)
    is_registered = bool(registered) and not unregistered
    return TreeStep("DevicesRegistered", yes_or_no(is_registered), [summary, *shown], unknown, obstacles)


def _of_problem(state: NodeFacts, problem: NodeProblem) -> Evidence:
    source = state.source
    return Evidence("node", source.record, source.at, source.reported_by, words=f"{problem.code}: {problem.message}")


def is_in_the_way(problem: NodeProblem) -> bool:
    """Is the node's devices' use given up for it?

    Device plugins since HAMi v2.8 leave the scheduler's question unanswered, and their devices are used all the same
    as long as the kubelet offers them.
    """
    return not (problem.code == HANDSHAKE_TOO_OLD and problem.is_asked and problem.allocatable)


def _registration_obstacles(
    found: Iterable[tuple[NodeFacts, NodeProblem]], facts: DiagnosisFacts
) -> list[FoundObstacle]:
    by_code: dict[str, list[tuple[NodeFacts, NodeProblem]]] = {}
    for state, problem in found:
        by_code.setdefault(problem.code, []).append((state, problem))
    obstacles = []
    for code, pairs in by_code.items():
        names = sorted({state.name for state, _ in pairs})
        words: dict[str, Word] = {"refused": len(names), "nodes": listed(names)}
        evidence = [_of_problem(state, problem) for state, problem in pairs[:MAX_EVIDENCE]]
        clauses = []
        aged = [(problem.handshake_at, state.name) for state, problem in pairs if problem.handshake_at]
        if code == HANDSHAKE_TOO_OLD and aged:
            oldest, node = min(aged)
            words |= {"age": span(facts.now - oldest), "node": node}
            clauses = ["age"]
        obstacles.append(FoundObstacle(code, words, {"nodes": len(names)}, names, len(names), evidence, clauses))
    return obstacles
