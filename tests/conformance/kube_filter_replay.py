"""Replays recorded attempts of kube-scheduler 1.36.3 (see cases/kube/README.md) on snapshots of their clusters."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.filters.judge import judge
from engine.filters.judgement import JudgedOutcome, Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.filters.verdicts import PluginRefusal
from engine.snapshot.fields import RejectedObject
from engine.snapshot.reading import read_snapshot
from engine.snapshot.requests import Amounts
from engine.snapshot.snapshot import Snapshot
from tests.conformance.difference import Case, Difference

Refusal = tuple[str, str, tuple[str, ...]]
"""Plugin, code, and the sorted reasons: kube-scheduler lists extended resources in any order."""

_RENAMED: Final = {"cpu_milli": "cpu"}


def compare_kube_filter(case: Case) -> Iterator[Difference]:
    """Yield every fact of an attempt in which the judge differs from kube-scheduler."""
    snapshot = read_snapshot([*case["nodes"], *case["pods"], *case["objects"]])
    for rejected in snapshot.rejected.values():
        yield Difference("", "object", rejected.to_sentence(), "read")
    judgement = judge(snapshot, case["pod"], release=read_release(case), alone=True)
    if isinstance(judgement, RejectedObject):
        yield Difference("", "pod", judgement.to_sentence(), "read")
        return
    expected = case["expected"]
    yield from compare_amounts(snapshot, judgement, expected)
    yield from compare_attempt(judgement, expected)
    if "nodes" in expected:
        yield from compare_nodes(judgement, expected)
    yield from compare_message(judgement, expected)


def read_release(case: Case) -> SchedulerRelease:
    """Read the feature gates of a case; without any it is a default cluster."""
    gates = (entry.split("=") for entry in case.get("gates", "").split(",") if entry)
    return SchedulerRelease(LATEST.minor, LATEST.patch, {gate: value == "true" for gate, value in gates})


def compare_amounts(snapshot: Snapshot, judgement: Judgement, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare the pod's request, and what is requested on every node."""
    request = drop_zeros(judgement.request)
    if request != rename(expected["pod_request"]):
        yield Difference("", "request", request, rename(expected["pod_request"]))
    for name, state in expected["node_state"].items():
        node = snapshot.nodes[name]
        ours, theirs = (len(node.pods), drop_zeros(node.requested)), (state["pods"], rename(state["requested"]))
        if ours != theirs:
            yield Difference(name, "pods and requested amounts", ours, theirs)


def compare_attempt(judgement: Judgement, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare the outcome, and what was decided before the nodes."""
    names = None if judgement.node_names is None else sorted(judgement.node_names)
    facts: dict[str, tuple[object, object]] = {
        "outcome": (judgement.outcome.value, expected["outcome"]),
        "pre-enqueue": (
            [to_refusal(refusal) for refusal in judgement.pre_enqueue],
            [read_refusal(refusal) for refusal in expected.get("pre_enqueue", ())],
        ),
        "prefilter": (
            to_refusal(judgement.prefilter) if judgement.prefilter else None,
            read_refusal(expected["prefilter"]) if "prefilter" in expected else None,
        ),
        "prefilter nodes": (names, expected.get("prefilter_nodes")),
    }
    if "skipped_filters" in expected:
        facts["skipped filters"] = sorted(judgement.skipped), sorted(expected["skipped_filters"])
    yield from differ("", facts)


def compare_nodes(judgement: Judgement, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare the refusal of each node, the nodes that fit, and each filter by itself."""
    theirs = {name: read_node(state) for name, state in expected["nodes"].items()}
    ours: dict[str, Refusal | None] = {name: to_refusal(refusal) for name, refusal in judgement.refused.items()}
    ours |= dict.fromkeys(judgement.outside)
    yield from differ("", {"fit": (sorted(judgement.fitting), sorted(expected["fit"]))})
    for name in sorted(ours.keys() | theirs.keys()):
        yield from differ(name, {"refusal": (ours.get(name, "none"), theirs.get(name, "none"))})
    alone = expected.get("alone", {})
    for name in sorted(judgement.alone.keys() | alone.keys()):
        by_plugin = {plugin: sorted(refusal.reasons) for plugin, refusal in judgement.alone.get(name, {}).items()}
        recorded = {plugin: sorted(reasons) for plugin, reasons in alone.get(name, {}).items()}
        yield from differ(name, {"each filter alone": (by_plugin, recorded)})


def compare_message(judgement: Judgement, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare the message with all its parts, and whether preemption found a node."""
    recorded = expected.get("message", "")
    alternatives = {recorded, *expected.get("message_alternatives", ())}
    if judgement.outcome is JudgedOutcome.ERROR:
        if not set(judgement.error_messages) <= alternatives:
            yield Difference("", "error", judgement.error_messages, sorted(alternatives))
    else:
        yield from differ("", {"message": (judgement.message, recorded)})
    preempts = judgement.preemption_node is not None
    yield from differ("", {"preemption finds a node": (preempts, "nominated_node_sample" in expected)})


def differ(node: str, facts: Mapping[str, tuple[object, object]]) -> Iterator[Difference]:
    """Yield the facts of which both sides are not equal."""
    for fact, (ours, theirs) in facts.items():
        if ours != theirs:
            yield Difference(node, fact, ours, theirs)


def to_refusal(refusal: PluginRefusal) -> Refusal:
    return refusal.plugin, refusal.code.value, tuple(sorted(refusal.reasons))


def read_refusal(refusal: Mapping[str, Any]) -> Refusal:
    return refusal["plugin"], refusal["code"], tuple(sorted(refusal["reasons"]))


def read_node(state: Mapping[str, Any]) -> Refusal | None:
    """Read the refusal of a node; None for one that was not looked at."""
    return None if state.get("absent") else read_refusal(state)


def drop_zeros(amounts: Amounts) -> dict[str, int]:
    return {resource: amount for resource, amount in amounts.items() if amount}


def rename(amounts: Mapping[str, int]) -> dict[str, int]:
    return {_RENAMED.get(resource, resource): amount for resource, amount in amounts.items()}
