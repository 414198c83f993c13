"""Search for the smallest changes of a pod after which it fits. Each is a decision of the scheduler's own fit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.vendors import BY_SPECIFICATION, Family, Vendor, find_code
from engine.suggestions.ask import ANNOTATION_CONSTRAINTS, Amount, Ask, Constraint
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.trial import Trial

_AMOUNTS: Final[tuple[tuple[Amount, Constraint, int], ...]] = (
    ("memory_mib", "memory", 1),
    ("memory_percentage", "memory", 1),
    ("cores", "cores", 0),
    ("count", "count", 1),
)
"""Amounts that may be lowered, with their constraint and the lowest value that is tried."""
NODES: Final = "node selector, affinity, taints or cordon"


def suggest_own_changes(trial: Trial, ask: Ask) -> Iterator[Suggestion]:
    """Suggest changes by the owner of the pod: of amounts, of annotations, and of what keeps kube-scheduler from
    nodes."""
    annotated = [constraint for constraint in ANNOTATION_CONSTRAINTS if ask.list_annotation_keys(constraint)]
    # Without giving up annotations, with each, with all of them: each time with every amount that could be lowered.
    some: list[list[Constraint]] = [[], *([kind] for kind in annotated), *([annotated] if len(annotated) > 1 else [])]
    for constraints in some:
        eased = ask.without(constraints)
        if constraints and (decision := trial.decide(eased)):
            yield _suggest_needed(trial, ask, constraints, ask, (), decision)
            continue  # nothing more needs to be given up
        lowest = {name: least for name, _, least in _AMOUNTS if eased.find_positions(name)}
        if not trial.fits(_cap_amounts(eased, lowest)):
            continue  # no amount helps
        helps = False
        for name, constraint, least in _AMOUNTS:
            if lowered := _lower_amount(trial, eased, name, least):
                helps = True
                capped, decision = lowered
                amounts = tuple(_edit_amounts(ask, capped, name, constraint))
                yield _suggest_needed(trial, ask, constraints, capped, amounts, decision)
        if constraints == annotated and not helps:
            yield from _suggest_several_amounts(trial, ask, annotated, lowest)
    if decision := trial.decide_without(ask, "nodes"):
        yield build_suggestion(
            [Edit("nodes", NODES, f"{len(trial.offered)} nodes offered", str(decision.chosen))], decision
        )


def _suggest_several_amounts(
    trial: Trial, ask: Ask, annotated: Sequence[Constraint], lowest: Mapping[Amount, int]
) -> Iterator[Suggestion]:
    """Lower all amounts as far as possible, so that the pod fits; then restore each, or raise it as far as the pod
    still fits."""
    eased, limits = ask.without(annotated), dict(lowest)
    for name in lowest:
        fewer = {other: limit for other, limit in limits.items() if other != name}
        if trial.fits(_cap_amounts(eased, fewer)):
            limits = fewer
    capped = eased
    for name in limits:
        others_lowered = _cap_amounts(eased, {other: limit for other, limit in limits.items() if other != name})
        lowered = _lower_amount(trial, others_lowered, name, lowest[name])
        if lowered is None:
            return
        capped = lowered[0]
        amounts_left = [getattr(capped.requests[position], name) for position in capped.find_positions(name)]
        limits[name] = max(amounts_left, default=lowest[name])
    if decision := trial.decide(capped):
        amounts = [
            edit for name, kind, _ in _AMOUNTS if name in limits for edit in _edit_amounts(ask, capped, name, kind)
        ]
        yield _suggest_needed(trial, ask, annotated, capped, amounts, decision)


def _cap_amounts(ask: Ask, limits: Mapping[Amount, int]) -> Ask:
    for name, limit in limits.items():
        ask = ask.cap(name, limit)
    return ask


def build_suggestion(edits: Sequence[Edit], decision: Decision) -> Suggestion:
    """Build the suggestion that the decision proves: after these changes the pod fits."""
    if decision.allocation is None:
        raise ValueError("a decision without a node proves nothing")
    return Suggestion(tuple(edits), decision.allocation, len(list_fitting_nodes(decision)))


def list_fitting_nodes(decision: Decision) -> list[str]:
    where = np.flatnonzero(decision.node_verdict >= verdict_codes.NODE_FITS)
    return [decision.node_names[row] for row in where.tolist()]


def _suggest_needed(
    trial: Trial, ask: Ask, constraints: Sequence[Constraint], lowered: Ask, amounts: Sequence[Edit], decision: Decision
) -> Suggestion:
    """Restore the annotations that need not be given up, next to the lowered amounts."""
    needed = list(constraints)
    for constraint in constraints:
        fewer = [other for other in needed if other != constraint]
        if fewer_decision := trial.decide(lowered.with_annotations(ask.without(fewer).annotations)):
            needed, decision = fewer, fewer_decision
    return build_suggestion([*_edit_annotations(ask, needed), *amounts], decision)


def _lower_amount(trial: Trial, ask: Ask, name: Amount, least: int) -> tuple[Ask, Decision] | None:
    """Lower the amount of as few containers as possible to the highest value with which the pod fits."""
    positions = ask.find_positions(name)
    if not trial.fits(ask.cap(name, least)):
        return None
    for position in list(positions):
        fewer = [other for other in positions if other != position]
        if trial.fits(ask.cap(name, least, fewer)):
            positions = fewer
    return _find_highest(trial, ask, name, least, positions) if positions else None


def _find_highest(
    trial: Trial, ask: Ask, name: Amount, least: int, positions: list[int]
) -> tuple[Ask, Decision] | None:
    """Find the highest value by halving between ``least``, with which the pod fits, and the requested one."""
    high = max(getattr(ask.requests[position], name) for position in positions)
    low, best = least, ask.cap(name, least, positions)
    if name in ("memory_mib", "cores") and (left := trial.find_max_left(best, name, positions)) is not None:
        high = min(high, left + 1)
    # If only this amount kept the pod out, it mostly fits with what the devices have left.
    middle = high - 1
    while high - low > 1:
        if trial.fits(capped := ask.cap(name, middle, positions)):
            best, low = capped, middle
        else:
            high = middle
        middle = (low + high) // 2
    # The decision about the final amount is the proof.
    decision = trial.decide(best)
    return (best, decision) if decision and best != ask else None


def _edit_annotations(ask: Ask, constraints: Sequence[Constraint]) -> Iterator[Edit]:
    for constraint in constraints:
        keys = ask.list_annotation_keys(constraint)
        for key in keys:
            yield Edit(constraint, key, str(ask.annotations[key]), "", 1 / len(keys))


def _edit_amounts(before: Ask, after: Ask, name: Amount, constraint: Constraint) -> Iterator[Edit]:
    pairs = zip(before.requests, after.requests, strict=True)
    changed = [(old, new) for old, new in pairs if getattr(old, name) != getattr(new, name)]
    for old, new in changed:
        vendor = before.vendors[find_code(before.vendors, old.vendor) - 1]
        resource, unit = _name_resource(vendor, old, name), 1
        if name == "memory_mib":
            unit = max(vendor.amounts.memory_unit_mib, 1)
        requested, left = getattr(old, name), getattr(new, name)
        # Devices count one by one, other amounts as a share of the requested amount.
        share = requested - left if name == "count" else (requested - left) / requested / len(changed)
        yield Edit(constraint, f"{old.name}: {resource}", str(requested // unit), str(left // unit), share)


def _name_resource(vendor: Vendor, request: VendorRequest, name: Amount) -> str:
    resources = vendor.resources
    if vendor.family is Family.ENFLAME and request.memory_percentage != BY_SPECIFICATION:
        # Its memory is a number of slices.
        return resources.count
    return {
        "memory_mib": resources.memory,
        "memory_percentage": resources.percentage,
        "cores": resources.cores,
        "count": resources.count,
    }[name]
