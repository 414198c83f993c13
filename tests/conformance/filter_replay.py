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
from tests.conformance.cluster import cluster_of, policy_of
from tests.conformance.configured import vendors_of
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import pod_object
from tests.conformance.serving import replied

_TIMES: Final = ("-time", "_TIME")
"""Ends of keys whose value is the time of the call; the reply is compared with them."""


_WRITTEN_BY: Final = {
    "CAMBRICON_DSMLU_ASSIGNED": "MLU",
    "CAMBRICON_DSMLU_PROFILE": "MLU",
    "metax-tech.com/gpu-devices-allocated": "Metax-SGPU",
    "metax-tech.com/predicate-time": "Metax-SGPU",
    "predicate-time": "Ascend",
}


def filter_differences(case: Case) -> Iterator[Difference]:
    """Everything that we would answer otherwise: verdict by verdict, then the rest of the reply and of the pod."""
    columns = cluster_of(case)
    differences = list(_about_verdicts(case, columns))
    yield from differences
    # What follows from a difference is no second one: a rule that explains a node leaves all else to be compared.
    if all(difference.node or difference.about == "chosen" for difference in differences):
        yield from _about_reply(case, columns, differences)


def _about_verdicts(case: Case, columns: ClusterColumns) -> Iterator[Difference]:
    policy, pod = policy_of(case), pod_object(case["pod"])
    names = case["node_names"]
    answer = decide(columns, pod, names, policy)
    yield from _about_requests(case, answer)
    if isinstance(answer, NotOurs):
        yield from _differs("", "nodes handed back", names, case["out_wire_reply"]["NodeNames"])
    elif isinstance(answer, Failed):
        yield from _differs("", "error", answer.error, case.get("out_error"))
    else:
        yield from _about_decision(case, answer)
        for name in dict.fromkeys(names):
            yield from _about_grants(case, name, decide(columns, pod, [name], policy))


def _about_reply(case: Case, columns: ClusterColumns, found: Sequence[Difference]) -> Iterator[Difference]:
    """What goes over the wire, and what is written into the pod, but for what ``found`` says already."""
    reply, pod = replied(case, columns)
    expected = dict(case["out_wire_reply"])
    if case.get("out_tie") and not expected["Error"]:
        # HAMi's reply is one of several that would do.
        expected["NodeNames"] = [min(case["out_best_nodes"])]
    differing = {difference.node for difference in found}
    is_other = any(difference.about == "chosen" for difference in found)
    yield from _differs("", "reply", *(_without(answer, differing, is_other=is_other) for answer in (reply, expected)))
    given = {difference.node for difference in found if difference.about not in ("reason", "score")}
    if not is_other and not given & set(expected["NodeNames"] or ()):
        yield from _differs("", "labels", pod.labels, _written(case, expected, "out_pod_labels"))
        yield from _differs("", "annotations", pod.annotations, _annotations(case, expected))


def _without(reply: Mapping[str, Any], nodes: Collection[str], *, is_other: bool) -> dict[str, Any]:
    """The reply without what it says of these nodes and, where another one was chosen, of the choice."""
    failed = {name: reason for name, reason in (reply["FailedNodes"] or {}).items() if name not in nodes}
    left_out = {"NodeNames", "Nodes"} if is_other else set()
    return {key: value for key, value in reply.items() if key not in left_out} | {"FailedNodes": failed}


def _written(case: Case, reply: Mapping[str, Any], about: str) -> dict[str, str]:
    written: dict[str, str] = dict(case.get(about) or {})
    return written | {ASSIGNED_NODE: reply["NodeNames"][0]} if written else {}


def _annotations(case: Case, reply: Mapping[str, Any]) -> dict[str, str]:
    """What HAMi wrote, in the positional form, and with the first node of a tie."""
    written = _written(case, reply, "out_pod_annotations")
    if not written:
        return {}
    kept = {key: written[key] for key in (ASSIGNED_NODE, ASSIGNED_TIME)}
    return kept | _node_annotations(case, written[ASSIGNED_NODE])


def _node_annotations(case: Case, name: str) -> dict[str, str]:
    """What HAMi writes about the devices of a node, in the positional form."""
    node = case["out_per_node"][name]
    written = dict(node["annotations_v2_10_0"])
    if slices := _positional_slices(node):
        written[MIG_ALLOCATIONS] = slices
    positional = node.get("devices_positional") or {NVIDIA.word: node["vgpu_devices_positional"]}
    for vendor in vendors_of(case):
        for key in (vendor.pod.allocated, vendor.pod.to_allocate):
            if key in written:
                written[key] = positional.get(vendor.word, "")
    # HAMi writes empty places for vendors that the pod does not ask (docs/hami-differences.md).
    asked = {word for request in case["out_requests"] for word in request}
    return {key: value for key, value in written.items() if value and _vendor_of(key, asked)}


def _vendor_of(key: str, asked: set[str]) -> bool:
    """Whether a vendor that the pod asks writes the annotation."""
    word = _WRITTEN_BY.get(key) or (key.removeprefix("huawei.com/") if key.startswith("huawei.com/") else "")
    return not word or any(vendor.startswith(word) for vendor in asked)


def _positional_slices(node: Mapping[str, Any]) -> str:
    """HAMi's MIG annotation, its containers counted with the empty places that v2.10.0 drops; "" for none."""
    text: str = node["annotations_v2_10_0"].get(MIG_ALLOCATIONS, "")
    if not (text and node.get("v2_10_0_drops_slot")):
        return text
    filled = [place for place, held in enumerate(node["vgpu_devices_positional"].split(";")) if held]
    rows = [{**row, "containerIndex": filled[row["containerIndex"]]} for row in json.loads(text)]
    return json.dumps(rows, separators=(",", ":"))


def _differs(node: str, about: str, ours: object, theirs: object) -> Iterator[Difference]:
    if ours != theirs:
        yield Difference(node, about, ours, theirs)


def _about_requests(case: Case, answer: Decision | NotOurs | Failed) -> Iterator[Difference]:
    ours: list[dict[str, Any]] = []
    for asked in answer.containers:
        if not asked.is_further:
            ours.append({})
        if asked.asks:
            ours[-1][asked.vendor] = _request(asked)
    yield from _differs("", "requests", ours, case["out_requests"])


def _request(asked: VendorRequest) -> dict[str, Any]:
    amounts = (asked.count, asked.vendor, asked.memory_mib, asked.memory_percentage, asked.cores)
    return dict(zip(("Nums", "Type", "Memreq", "MemPercentagereq", "Coresreq"), amounts, strict=True))


def _about_decision(case: Case, decision: Decision) -> Iterator[Difference]:
    if "calcScore failed" in case.get("out_error", ""):
        yield Difference("", "error", None, case["out_error"])
        return
    failed = decision.failed_nodes()
    for place, name in enumerate(decision.node_names):
        their = case["out_per_node"].get(name, {"fit": False, "reason": NODE_UNREGISTERED})
        yield from _differs(name, "reason", failed.get(name), their.get("reason"))
        if name not in failed and their["fit"]:
            yield from _about_score(name, decision.score[place], np.float32(their["score_g"]))
    yield from _differs("", "chosen", decision.chosen, min(case["out_best_nodes"] or [None]))


def _about_score(name: str, ours: np.float32, theirs: np.float32) -> Iterator[Difference]:
    if not np.array_equal(ours, theirs, equal_nan=True):
        yield Difference(name, "score", ours, theirs)


def _about_grants(case: Case, name: str, alone: Decision | NotOurs | Failed) -> Iterator[Difference]:
    """What the pod would get on one node, whether or not it is the chosen one."""
    their = case["out_per_node"].get(name, {"fit": False})
    if not (isinstance(alone, Decision) and alone.allocation and their["fit"]):
        return
    ours = alone.annotations
    theirs = {key: value for key, value in _node_annotations(case, name).items() if not key.endswith(_TIMES)}
    about = {DEVICES_ALLOCATED: "devices", MIG_ALLOCATIONS: "MIG"}
    for key in sorted({*ours, *theirs} - {ASSIGNED_NODE, DEVICES_TO_ALLOCATE}):
        yield from _differs(name, about.get(key, key), ours.get(key, ""), theirs.get(key, ""))
