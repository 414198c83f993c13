"""Replays recorded filter calls of HAMi v2.10.0 (filter_cases.jsonl) through the project's public functions."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, Failed, NotOurs
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.annotations import (
    ASSIGNED_NODE,
    ASSIGNED_TIME,
    DEVICES_ALLOCATED,
    DEVICES_TO_ALLOCATE,
    MIG_ALLOCATIONS,
)
from engine.hami.vendors import NVIDIA
from engine.summaries.text import NODE_UNREGISTERED
from tests.conformance.cluster import build_cluster, get_policy
from tests.conformance.configured import read_vendors
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import build_pod
from tests.conformance.serving import answer_filter

_TIMES: Final = ("-time", "_TIME")
"""Ends of keys whose value is the time of the call; the reply is compared with them."""


_WRITTEN_BY: Final = {
    "CAMBRICON_DSMLU_ASSIGNED": "MLU",
    "CAMBRICON_DSMLU_PROFILE": "MLU",
    "metax-tech.com/gpu-devices-allocated": "Metax-SGPU",
    "metax-tech.com/predicate-time": "Metax-SGPU",
    "predicate-time": "Ascend",
}


def compare_filter(case: Case) -> Iterator[Difference]:
    """Compare our answer with HAMi's: verdict by verdict, then the remainder of the reply and the pod."""
    columns = build_cluster(case)
    differences = list(_compare_verdicts(case, columns))
    yield from differences
    # What follows from a difference is no second one: a rule that explains a node leaves all else to be compared.
    if all(difference.node or difference.fact == "chosen" for difference in differences):
        yield from _compare_reply(case, columns, differences)


def _compare_verdicts(case: Case, columns: ClusterColumns) -> Iterator[Difference]:
    policy, pod = get_policy(case), build_pod(case["pod"])
    names = case["node_names"]
    answer = decide(columns, pod, names, policy)
    yield from _compare_requests(case, answer)
    if isinstance(answer, NotOurs):
        yield from _compare("", "nodes handed back", names, case["out_wire_reply"]["NodeNames"])
    elif isinstance(answer, Failed):
        yield from _compare("", "error", answer.error, case.get("out_error"))
    else:
        yield from _compare_decision(case, answer)
        for name in dict.fromkeys(names):
            yield from _compare_grants(case, name, decide(columns, pod, [name], policy))


def _compare_reply(case: Case, columns: ClusterColumns, verdicts: Sequence[Difference]) -> Iterator[Difference]:
    """Compare the reply and the pod's annotations, without what ``verdicts`` shows already."""
    reply, pod = answer_filter(case, columns)
    expected = dict(case["out_wire_reply"])
    if case.get("out_tie") and not expected["Error"]:
        # HAMi's reply is one of several that would do.
        expected["NodeNames"] = [min(case["out_best_nodes"])]
    differing = {difference.node for difference in verdicts}
    is_other = any(difference.fact == "chosen" for difference in verdicts)
    ours, theirs = (_drop_nodes(answer, differing, is_other=is_other) for answer in (reply, expected))
    yield from _compare("", "reply", ours | {"FailedNodes": None}, theirs | {"FailedNodes": None})
    for name in sorted({*ours["FailedNodes"], *theirs["FailedNodes"]}):
        yield from _compare(name, "reason", ours["FailedNodes"].get(name), theirs["FailedNodes"].get(name))
    granted = {difference.node for difference in verdicts if difference.fact not in ("reason", "score")}
    if not is_other and not granted & set(expected["NodeNames"] or ()):
        yield from _compare("", "labels", pod.labels, _get_written(case, expected, "out_pod_labels"))
        yield from _compare("", "annotations", pod.annotations, _build_annotations(case, expected))


def _drop_nodes(reply: Mapping[str, Any], nodes: Collection[str], *, is_other: bool) -> dict[str, Any]:
    """Drop the answers about these nodes and, where another node was chosen, the choice."""
    failed = {name: reason for name, reason in (reply["FailedNodes"] or {}).items() if name not in nodes}
    left_out = {"NodeNames", "Nodes"} if is_other else set()
    return {key: value for key, value in reply.items() if key not in left_out} | {"FailedNodes": failed}


def _get_written(case: Case, reply: Mapping[str, Any], key: str) -> dict[str, str]:
    written: dict[str, str] = dict(case.get(key) or {})
    return written | {ASSIGNED_NODE: reply["NodeNames"][0]} if written else {}


def _build_annotations(case: Case, reply: Mapping[str, Any]) -> dict[str, str]:
    """Build the annotations that HAMi wrote, in the positional form, for the first node of a tie."""
    written = _get_written(case, reply, "out_pod_annotations")
    if not written:
        return {}
    assignment = {key: written[key] for key in (ASSIGNED_NODE, ASSIGNED_TIME)}
    return assignment | _build_node_annotations(case, written[ASSIGNED_NODE])


def _build_node_annotations(case: Case, name: str) -> dict[str, str]:
    """Build HAMi's annotations of the devices of a node, in the positional form."""
    node = case["out_per_node"][name]
    written = dict(node["annotations_v2_10_0"])
    if slices := _write_positional_slices(node):
        written[MIG_ALLOCATIONS] = slices
    positional = node.get("devices_positional") or {NVIDIA.word: node["vgpu_devices_positional"]}
    for vendor in read_vendors(case):
        for key in (vendor.pod.allocated, vendor.pod.to_allocate):
            if key in written:
                written[key] = positional.get(vendor.word, "")
    # HAMi writes empty places for vendors that the pod does not ask (docs/hami-differences.md).
    requested = {word for request in case["out_requests"] for word in request}
    return {key: value for key, value in written.items() if value and _is_of_requested_vendor(key, requested)}


def _is_of_requested_vendor(key: str, requested: set[str]) -> bool:
    """Tell whether a vendor that the pod requests writes the annotation."""
    word = _WRITTEN_BY.get(key) or (key.removeprefix("huawei.com/") if key.startswith("huawei.com/") else "")
    return not word or any(vendor.startswith(word) for vendor in requested)


def _write_positional_slices(node: Mapping[str, Any]) -> str:
    """Write HAMi's MIG annotation, its containers counted with the empty places that v2.10.0 drops; "" for none."""
    text: str = node["annotations_v2_10_0"].get(MIG_ALLOCATIONS, "")
    if not (text and node.get("v2_10_0_drops_slot")):
        return text
    filled = [position for position, held in enumerate(node["vgpu_devices_positional"].split(";")) if held]
    rows = [{**row, "containerIndex": filled[row["containerIndex"]]} for row in json.loads(text)]
    return json.dumps(rows, separators=(",", ":"))


def _compare(node: str, fact: str, ours: object, theirs: object) -> Iterator[Difference]:
    if ours != theirs:
        yield Difference(node, fact, ours, theirs)


def _compare_requests(case: Case, answer: Decision | NotOurs | Failed) -> Iterator[Difference]:
    ours: list[dict[str, Any]] = []
    for request in answer.containers:
        if not request.is_further:
            ours.append({})
        if request.asks:
            ours[-1][request.vendor] = _to_request(request)
    yield from _compare("", "requests", ours, case["out_requests"])


def _to_request(request: VendorRequest) -> dict[str, Any]:
    amounts = (request.count, request.vendor, request.memory_mib, request.memory_percentage, request.cores)
    return dict(zip(("Nums", "Type", "Memreq", "MemPercentagereq", "Coresreq"), amounts, strict=True))


def _compare_decision(case: Case, decision: Decision) -> Iterator[Difference]:
    if "calcScore failed" in case.get("out_error", ""):
        yield Difference("", "error", None, case["out_error"])
        return
    failed = decision.list_failed_nodes()
    for position, name in enumerate(decision.node_names):
        their = case["out_per_node"].get(name, {"fit": False, "reason": NODE_UNREGISTERED})
        yield from _compare(name, "reason", failed.get(name), their.get("reason"))
        if name not in failed and their["fit"]:
            yield from _compare_score(name, decision.score[position], np.float32(their["score_g"]))
    yield from _compare("", "chosen", decision.chosen, min(case["out_best_nodes"] or [None]))


def _compare_score(name: str, ours: np.float32, theirs: np.float32) -> Iterator[Difference]:
    if not np.array_equal(ours, theirs, equal_nan=True):
        yield Difference(name, "score", ours, theirs)


def _compare_grants(case: Case, name: str, alone: Decision | NotOurs | Failed) -> Iterator[Difference]:
    """Compare what the pod would get on one node, whether or not it is the chosen one."""
    their = case["out_per_node"].get(name, {"fit": False})
    if not (isinstance(alone, Decision) and alone.allocation and their["fit"]):
        return
    ours = alone.annotations
    theirs = {key: value for key, value in _build_node_annotations(case, name).items() if not key.endswith(_TIMES)}
    facts = {DEVICES_ALLOCATED: "devices", MIG_ALLOCATIONS: "MIG"}
    for key in sorted({*ours, *theirs} - {ASSIGNED_NODE, DEVICES_TO_ALLOCATE}):
        yield from _compare(name, facts.get(key, key), ours.get(key, ""), theirs.get(key, ""))
