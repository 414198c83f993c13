"""The answer about many pods: what it counts, says and does not know."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.suggestions.admission import MAX_PODS, PendingPods, build_suggestions_for_many, judge
from schemas.answers.suggestions import SuggestionsForMany
from schemas.events import AttemptSummarized
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node

REFUSED = json.loads(Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/002.json").read_text())
"""An attempt that no node passed, of a pod with eight whole devices after an init container without any."""
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def build_group(pods: int, workload: str = "Job/train", **changed: Any) -> PendingPods:
    attempt = AttemptSummarized.model_validate(REFUSED | changed)
    return PendingPods(attempt, workload, pods)


def build_cordoned_node(name: str) -> dict[str, Any]:
    devices = [a_device(f"{name}-{number}") for number in range(8)]
    return a_node(name, devices, device_cordon=",".join(device["id"] for device in devices))


def answer(*groups: PendingPods, nodes: int = 1) -> SuggestionsForMany:
    offered = groups[0].attempt.nodes[:nodes]
    judged = judge(a_cluster(*(build_cordoned_node(name) for name in offered)), groups)
    return build_suggestions_for_many("default", None, NOW, 1000, judged, ["quotas"])


def test_a_change_says_what_it_is_whom_it_lets_in_and_who_does_it() -> None:
    suggestions = answer(build_group(2))
    node = REFUSED["nodes"][0]
    (item,) = suggestions.items
    assert item.sentence.en == f"Uncordon the devices of {node}: then 1 of the 2 pods fits."
    assert item.sentence.zh == f"解除节点 {node} 上设备的封锁：2 个 Pod 中有 1 个可以调度。"
    assert (item.constraint, item.where, item.who_acts) == ("cordon", node, "administrator")
    assert (item.pods, item.devices, item.workloads[0].workload) == (1, 8, "Job/train")


def test_of_thousands_of_equal_pods_so_many_are_tried_and_the_answer_says_so() -> None:
    suggestions = answer(build_group(5000))
    assert (suggestions.waiting, suggestions.judged, suggestions.fit) == (1000, MAX_PODS, 0)


def test_what_is_given_up_is_for_the_owners_of_the_pods() -> None:
    pods = build_group(1, constraints={"nvidia.com/use-gputype": "H100"})
    devices = [a_device(f"GPU-{number}") for number in range(8)]
    offered, other = (a_node(name, devices) for name in (REFUSED["nodes"][0], "other"))
    (given_up,) = build_suggestions_for_many("default", "llm", NOW, 1, judge(a_cluster(offered), [pods]), []).items
    assert (given_up.constraint, given_up.where, given_up.who_acts) == ("type", "", "you")
    # Nobody has offered the other node, which would take a pod without this annotation.
    (not_offered,) = build_suggestions_for_many(
        "default", "llm", NOW, 1, judge(a_cluster(other), [build_group(1)]), []
    ).items
    assert (not_offered.constraint, not_offered.where, not_offered.who_acts) == ("nodes", "", "you")


def test_pods_of_which_no_source_says_the_annotations_are_named_as_not_known() -> None:
    texts = [unknown.en for unknown in answer(build_group(1, constraints=None)).not_known]
    assert [text.split(":")[0] for text in texts] == [
        "Quotas of namespaces are in no record",
        "No source says which annotations of the pod constrain its devices",
    ]
