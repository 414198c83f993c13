"""Finds the smallest changes of a pod after which it fits. Each is a decision of the scheduler's own fit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.hami.vendors import Resources, find_code
from engine.suggestions.ask import OF_ANNOTATIONS, Amount, Ask, Constraint
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import Trial

_AMOUNTS: Final[tuple[tuple[Amount, Constraint, int], ...]] = (
    ("memory_mib", "memory", 1),
    ("memory_percentage", "memory", 1),
    ("cores", "cores", 0),
    ("count", "count", 1),
)
"""What may be lowered, and the least that is tried."""
NODES: Final = "node selector, affinity, taints or cordon"


def own_changes(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    """What the owner of the pod may change: amounts and annotations, and what keeps kube-scheduler from nodes."""
    annotated = [constraint for constraint in OF_ANNOTATIONS if ask.annotation_keys(constraint)]
    # None of the annotations, each of them, all of them: with every amount that could be lowered as well.
    some: list[list[Constraint]] = [[], *([kind] for kind in annotated), *([annotated] if len(annotated) > 1 else [])]
    for constraints in some:
        eased = ask.without(constraints)
        if constraints and (decision := trial.decide(eased)):
            yield _needed(trial, ask, constraints, ask, (), decision)
            continue  # nothing more needs to be given up
        lowest = {name: least for name, _, least in _AMOUNTS if eased.places(name)}
        if not trial.fits(_capped(eased, lowest)):
            continue  # no amount helps
        helps = False
        for name, constraint, least in _AMOUNTS:
            if lowered := _lowered(trial, eased, name, least):
                helps = True
                capped, decision = lowered
                amounts = tuple(_amount_edits(ask, capped, name, constraint))
                yield _needed(trial, ask, constraints, capped, amounts, decision)
        if constraints == annotated and not helps:
            yield from _several_amounts(trial, ask, annotated, lowest)
    if decision := trial.decide_without(ask, "nodes"):
        yield suggestion([Edit("nodes", NODES, f"{len(trial.offered)} nodes offered", str(decision.chosen))], decision)


def _several_amounts(
    trial: Trial, ask: Ask, annotated: Sequence[Constraint], lowest: Mapping[Amount, int]
) -> Iterator[Suggestion]:
    """All amounts as low as can be, which lets it fit; then each comes back, or rises as far as the pod still fits."""
    eased, limits = ask.without(annotated), dict(lowest)
    for name in lowest:
        fewer = {other: limit for other, limit in limits.items() if other != name}
        if trial.fits(_capped(eased, fewer)):
            limits = fewer
    capped = eased
    for name in limits:
        rest = _capped(eased, {other: limit for other, limit in limits.items() if other != name})
        found = _lowered(trial, rest, name, lowest[name])
        if found is None:
            return
        capped = found[0]
        asked = [getattr(capped.requests[place], name) for place in capped.places(name)]
        limits[name] = max(asked, default=lowest[name])
    if decision := trial.decide(capped):
        amounts = [
            edit for name, kind, _ in _AMOUNTS if name in limits for edit in _amount_edits(ask, capped, name, kind)
        ]
        yield _needed(trial, ask, annotated, capped, amounts, decision)


def _capped(ask: Ask, limits: Mapping[Amount, int]) -> Ask:
    for name, limit in limits.items():
        ask = ask.capped(name, limit)
    return ask


def suggestion(edits: Sequence[Edit], decision: Decision) -> Suggestion:
    """What the decision proves: after these changes the pod fits."""
    if decision.allocation is None:
        raise ValueError("a decision without a node proves nothing")
    return Suggestion(tuple(edits), decision.allocation, len(nodes_that_fit(decision)))


def nodes_that_fit(decision: Decision) -> list[str]:
    where = np.flatnonzero(decision.node_verdict >= verdict_codes.NODE_FITS)
    return [decision.node_names[place] for place in where.tolist()]


def _needed(
    trial: Trial, ask: Ask, constraints: Sequence[Constraint], lowered: Ask, amounts: Sequence[Edit], decision: Decision
) -> Suggestion:
    """With those annotations again that need not be given up, beside the amounts that were lowered."""
    needed = list(constraints)
    for constraint in constraints:
        fewer = [other for other in needed if other != constraint]
        if found := trial.decide(lowered.annotated(ask.without(fewer).annotations)):
            needed, decision = fewer, found
    return suggestion([*_annotation_edits(ask, needed), *amounts], decision)


def _lowered(trial: Trial, ask: Ask, name: Amount, least: int) -> tuple[Ask, Decision] | None:
    """The highest amount below today's with which the pod fits, of as few containers as can be."""
    places = ask.places(name)
    if not trial.fits(ask.capped(name, least)):
        return None
    for place in list(places):
        fewer = [other for other in places if other != place]
        if trial.fits(ask.capped(name, least, fewer)):
            places = fewer
    return _highest(trial, ask, name, least, places) if places else None


def _highest(trial: Trial, ask: Ask, name: Amount, least: int, places: list[int]) -> tuple[Ask, Decision] | None:
    """Found by halving between ``least``, with which the pod fits, and what is asked."""
    high = max(getattr(ask.requests[place], name) for place in places)
    low, found = least, ask.capped(name, least, places)
    if name in ("memory_mib", "cores") and (left := trial.max_left(found, name, places)) is not None:
        high = min(high, left + 1)
    # Mostly the pod fits with what the devices have left, where only this amount kept it out.
    middle = high - 1
    while high - low > 1:
        if trial.fits(capped := ask.capped(name, middle, places)):
            found, low = capped, middle
        else:
            high = middle
        middle = (low + high) // 2
    # The proof is the decision about what is shown.
    decision = trial.decide(found)
    return (found, decision) if decision and found != ask else None


def _annotation_edits(ask: Ask, constraints: Sequence[Constraint]) -> Iterator[Edit]:
    for constraint in constraints:
        keys = ask.annotation_keys(constraint)
        for key in keys:
            yield Edit(constraint, key, str(ask.annotations[key]), "", 1 / len(keys))


def _amount_edits(before: Ask, after: Ask, name: Amount, constraint: Constraint) -> Iterator[Edit]:
    pairs = zip(before.requests, after.requests, strict=True)
    changed = [(old, new) for old, new in pairs if getattr(old, name) != getattr(new, name)]
    for old, new in changed:
        vendor = before.vendors[find_code(before.vendors, old.vendor) - 1]
        resource, unit = _resource(vendor.resources, name), 1
        if name == "memory_mib":
            unit = max(vendor.amounts.memory_unit_mib, 1)
        asked, left = getattr(old, name), getattr(new, name)
        # Devices count one by one, everything else as a share of what was asked.
        share = asked - left if name == "count" else (asked - left) / asked / len(changed)
        yield Edit(constraint, f"{old.name}: {resource}", str(asked // unit), str(left // unit), share)


def _resource(resources: Resources, name: Amount) -> str:
    return {
        "memory_mib": resources.memory,
        "memory_percentage": resources.percentage,
        "cores": resources.cores,
        "count": resources.count,
    }[name]
