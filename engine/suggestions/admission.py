"""The one change that admits most of many pods that wait: each is tried, and the pods take their devices in turn."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from engine.fit.judge.reservation import release, reserve
from engine.suggestions.ask import OF_ANNOTATIONS, Ask, Constraint
from engine.suggestions.nodes import UnregisteredNodes, among
from engine.suggestions.trial import FLAGS, Trial, rows_where

MAX_NODES: Final = 20
"""How many nodes with cordoned, with unhealthy or with unregistered devices are tried: those with the most."""


class PendingPod(NamedTuple):
    """A pod that holds nothing, with a UID of its own: what it takes is held by it while the next are tried."""

    ask: Ask
    offered: tuple[str, ...]
    """The nodes that kube-scheduler asked about."""


@dataclass(frozen=True, slots=True)
class AdmittingChange:
    """A change, and the pods that it admits.

    where: the node whose devices are uncordoned, healed or registered, or the namespace without its quotas; empty
    where each pod gives up what it has of the constraint. admitted: positions among the pods, without those that fit as
    it is.
    """

    constraint: Constraint
    where: str
    admitted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """fit: positions of the pods that fit as it is. changes: the one that admits most first."""

    fit: tuple[int, ...]
    changes: list[AdmittingChange]


class _Change(NamedTuple):
    constraint: Constraint
    where: str
    made: AbstractContextManager[None]
    pods: Sequence[PendingPod | None]
    """In their places, as they ask after the change; None for one to which it changes nothing."""
    trial: Trial


def changes_by_admission(
    trial: Trial, pending: Sequence[PendingPod], unregistered: UnregisteredNodes | None = None
) -> AdmissionResult:
    """Every change that admits a pod. Pods take their devices in the given order, those that fit as it is first."""
    found = []
    with ExitStack() as back:
        fit = _placed(trial, pending, back)
        fitting = frozenset(fit)
        refused = [None if place in fitting else pod for place, pod in enumerate(pending)]
        changes = [_changes(trial, refused), _registered(trial, refused, unregistered) if unregistered else ()]
        for change in chain(*changes):
            with change.made, ExitStack() as undone:
                admitted = _placed(change.trial, change.pods, undone)
            if admitted:
                found.append(AdmittingChange(change.constraint, change.where, tuple(admitted)))
    found.sort(key=lambda admission: (-len(admission.admitted), admission.constraint, admission.where))
    return AdmissionResult(tuple(fit), found)


def _changes(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    yield from _given_up(trial, refused)
    for constraint, column, value, _ in FLAGS:
        rows = {node: rows_where(trial.columns, node, column, value=value) for node in trial.offered}
        worst = sorted((node for node in rows if rows[node]), key=lambda node: (-len(rows[node]), node))
        for node in worst[:MAX_NODES]:
            pods = _only_on(node, refused)
            yield _Change(constraint, node, trial.with_flags(column, rows[node], value=not value), pods, trial)
    yield from _quotas(trial, refused)


def _registered(
    trial: Trial, refused: Sequence[PendingPod | None], unregistered: UnregisteredNodes
) -> Iterator[_Change]:
    columns = unregistered.columns
    again = among(trial, unregistered, columns.node_names)
    size = {node: entry.size for node in again.offered if (entry := columns.entry(node))}
    for node in sorted(size, key=lambda node: (-size[node], node))[:MAX_NODES]:
        yield _Change("registration", node, nullcontext(), _only_on(node, refused), again)


def _only_on(node: str, pods: Sequence[PendingPod | None]) -> list[PendingPod | None]:
    """Where every other node refuses them still."""
    return [pod._replace(offered=(node,)) if pod and node in pod.offered else None for pod in pods]


def _given_up(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    for constraint in OF_ANNOTATIONS:
        pods = [
            pod._replace(ask=pod.ask.without([constraint])) if pod and pod.ask.annotation_keys(constraint) else None
            for pod in refused
        ]
        yield _Change(constraint, "", nullcontext(), pods, trial)
    known = frozenset(trial.columns.node_names)
    pods = [
        pod._replace(offered=trial.columns.node_names) if pod and known.difference(pod.offered) else None
        for pod in refused
    ]
    yield _Change("nodes", "", nullcontext(), pods, trial)


def _quotas(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    quotas = trial.columns.quotas
    for namespace in sorted({pod.ask.namespace for pod in refused if pod} & quotas.limits.keys()):
        # Only the limits: what the pods of the namespace use is counted on.
        limits = {name: limit for name, limit in quotas.limits.items() if name != namespace}
        pods = [pod if pod and pod.ask.namespace == namespace else None for pod in refused]
        yield _Change("quota", namespace, trial.with_quotas(replace(quotas, limits=limits)), pods, trial)


def _placed(trial: Trial, pods: Sequence[PendingPod | None], back: ExitStack) -> list[int]:
    """Positions of the pods that fit one after the other. They hold their devices until ``back`` is closed."""
    placed: list[int] = []
    refused: list[PendingPod] = []
    for place, pod in enumerate(pods):
        # Equal pods are many, and what refused one of them refuses the next: devices only get fuller.
        if pod is None or any(_is_equal(pod, other) for other in refused):
            continue
        decision = trial.decide(pod.ask, names=pod.offered)
        if decision is None:
            refused.append(pod)
            continue
        back.callback(release, trial.columns, str(pod.ask.metadata.get("uid", "")))
        reserve(trial.columns, decision, {"metadata": pod.ask.metadata})
        placed.append(place)
    return placed


def _is_equal(one: PendingPod, other: PendingPod) -> bool:
    is_equal = one.ask.requests == other.ask.requests and one.ask.annotations == other.ask.annotations
    return is_equal and one.ask.namespace == other.ask.namespace and one.offered == other.offered
