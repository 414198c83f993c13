"""Pods judged on small clusters, for tests of the filters."""

from typing import Any

from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot.reading import read_snapshot


def judge_pod(
    pod: dict[str, Any], *objects: dict[str, Any], unread: tuple[str, ...] = (), release: SchedulerRelease = LATEST
) -> Judgement:
    """Judge a pod on a cluster of objects, none of which may be malformed."""
    snapshot = read_snapshot(objects, unread)
    assert not snapshot.rejected
    judgement = judge(snapshot, pod, release=release, alone=True)
    assert isinstance(judgement, Judgement), judgement.to_sentence()
    return judgement


def get_reasons(judgement: Judgement, node: str = "n1") -> tuple[str, ...]:
    """Return the reasons of a node's refusal; () where the node fits."""
    refusal = judgement.refused.get(node)
    assert refusal or node in judgement.fitting, "nothing is known of the node"
    return refusal.reasons if refusal else ()


def get_codes(judgement: Judgement) -> dict[str, str]:
    """Return the codes of refusals by node."""
    return {node: refusal.code.value for node, refusal in judgement.refused.items()}
