"""The one change that admits most of many pods that wait: each is tried, and the pods take their devices in turn."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from diagnosis.suggestions.ask import OF_ANNOTATIONS, Ask, Constraint
from diagnosis.suggestions.trial import FLAGS, Trial, rows_where
from fit.judge.reservation import release, reserve

MAX_NODES: Final = 20
"""How many nodes with cordoned, or with unhealthy devices are tried: those with the most."""


@dataclass(frozen=True, slots=True)
class AdmittingChange:
    """A change, and the pods that it admits.

    where: the node whose devices are uncordoned or healed, or the namespace without its quotas; empty where each pod
    gives up its own annotations. admitted: positions among the pods, without those that fit as it is.
    """

    constraint: Constraint
    where: str
    admitted: tuple[int, ...]


class _Change(NamedTuple):
    constraint: Constraint
    where: str
    made: AbstractContextManager[None]
    pending: Sequence[Ask]


def changes_by_admission(trial: Trial, pending: Sequence[Ask]) -> list[AdmittingChange]:
    """Every change that admits a pod, the one that admits most first. Pods take their devices in the given order.

    pending: pods that hold nothing, each with a UID of its own: what it takes is held by it while the next are tried.
    """
    as_it_is = set(_placed(trial, pending))
    found = []
    for change in _changes(trial, pending):
        with change.made:
            admitted = tuple(place for place in _placed(trial, change.pending) if place not in as_it_is)
        if admitted:
            found.append(AdmittingChange(change.constraint, change.where, admitted))
    return sorted(found, key=lambda each: (-len(each.admitted), each.constraint, each.where))


def _changes(trial: Trial, pending: Sequence[Ask]) -> Iterator[_Change]:
    for constraint in OF_ANNOTATIONS:
        if any(ask.annotation_keys(constraint) for ask in pending):
            yield _Change(constraint, "", nullcontext(), [ask.without([constraint]) for ask in pending])
    for constraint, column, value, _ in FLAGS:
        rows = {node: rows_where(trial.columns, node, column, value=value) for node in trial.offered}
        worst = sorted((node for node in rows if rows[node]), key=lambda node: (-len(rows[node]), node))
        for node in worst[:MAX_NODES]:
            yield _Change(constraint, node, trial.with_flags(column, rows[node], value=not value), pending)
    quotas = trial.columns.quotas
    for namespace in sorted({str(ask.metadata.get("namespace", "")) for ask in pending} & quotas.limits.keys()):
        # Only the limits: what the pods of the namespace use is counted on.
        limits = {name: limit for name, limit in quotas.limits.items() if name != namespace}
        yield _Change("quota", namespace, trial.with_quotas(replace(quotas, limits=limits)), pending)


def _placed(trial: Trial, pending: Sequence[Ask]) -> list[int]:
    """Positions of the pods that fit one after the other. Afterwards nothing is held that was not held before."""
    placed: list[int] = []
    refused: list[Ask] = []
    with ExitStack() as back:
        for place, ask in enumerate(pending):
            # Equal pods are many, and what refused one of them refuses the next: devices only get fuller.
            if any(_is_equal(ask, other) for other in refused):
                continue
            decision = trial.decide(ask)
            if decision is None:
                refused.append(ask)
                continue
            back.callback(release, trial.columns, str(ask.metadata.get("uid", "")))
            reserve(trial.columns, decision, {"metadata": ask.metadata})
            placed.append(place)
    return placed


def _is_equal(one: Ask, other: Ask) -> bool:
    namespaces = one.metadata.get("namespace"), other.metadata.get("namespace")
    return one.requests == other.requests and one.annotations == other.annotations and namespaces[0] == namespaces[1]
