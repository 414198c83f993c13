"""Rules for where HAMi v2.10.0 is wrong and we answer otherwise on purpose: about behaviour, not about a case.

A rule must hold for each difference that it explains. Where HAMi's defect can be brought about through the input, the
rule does so and asks for the very answer that HAMi gave. The reasons stand in docs/hami-differences.md, under the
rule's name.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import build_batches
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks.reference_fit import Amounts, Pick, is_over
from engine.fit.judge.choose.scoring import score_devices
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision
from engine.fit.judge.request.device_request import build_device_request
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.request.pod_request import VendorRequest, read_request
from engine.hami.annotations import DEVICES_ALLOCATED
from engine.hami.quantities import parse_whole
from engine.hami.vendors import NVIDIA, Vendor
from tests.conformance.cluster import build_cluster, build_requests, get_policy
from tests.conformance.codec_replay import REFUSED, answer_codec
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import build_pod
from tests.conformance.quota_of_apps import counted_as_hami_counts
from tests.conformance.sums_in_32_bits import counted_in_32_bits, wrap

Replay = Callable[[Case], Iterable[Difference]]

_REGISTER: Final = "hami.io/node-nvidia-register"
_CORDON: Final = "hami.io/device-cordon"
_STABLE_SORT: Final = 12
_DIGITS: Final = re.compile(r"[+-]?0*([0-9.]*)")
_GO_DIGITS: Final = 18
_PAIRED: Final = "Ascend910C"


@dataclass(frozen=True, slots=True)
class Rule:
    """name: its heading in the document. covers: whether it explains a difference, given how the case is replayed."""

    name: str
    covers: Callable[[Case, Difference, Replay], bool]


def explain(rules: Iterable[Rule], case: Case, differences: Sequence[Difference], replay: Replay) -> list[str]:
    """List the rules behind all differences of a case; none if any difference has none.

    Another node may be chosen only because a node's score or fit is explained.
    """
    about_nodes = [difference for difference in differences if difference.fact != "chosen"]
    names = [_find_rule(rules, case, difference, replay) for difference in about_nodes]
    return sorted(set(names)) if all(names) else []


def _find_rule(rules: Iterable[Rule], case: Case, difference: Difference, replay: Replay) -> str:
    return next((rule.name for rule in rules if rule.covers(case, difference, replay)), "")


# Cordon


def _keeps_the_old_cordon(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether our answer is HAMi's, or differs by another rule, with the cordon that the node had before."""
    node = _find_node(case, difference.node)
    before = (node.get("previous") or {}).get("annotations")
    if before is None or before.get(_CORDON) == node["annotations"].get(_CORDON):
        return False
    annotations = {key: value for key, value in node["annotations"].items() if key != _CORDON}
    if _CORDON in before:
        annotations[_CORDON] = before[_CORDON]
    nodes = [
        {**candidate, "annotations": annotations} if candidate is node else candidate for candidate in case["nodes"]
    ]
    before_case = {**case, "nodes": nodes}
    remaining = [other for other in replay(before_case) if other.node == difference.node]
    others = (_wraps_at_32_bits, _sorts_unstably, _takes_apps_for_init_containers)
    return all(any(covers(before_case, other, replay) for covers in others) for other in remaining)


# 32 bits


def _wraps_at_32_bits(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether our answer is HAMi's, or differs by another rule, with HAMi's memory arithmetic in 32 bits."""
    with counted_in_32_bits():
        remaining = [other for other in replay(case) if other.node == difference.node]
        others = (_sorts_unstably, _takes_apps_for_init_containers)
        return difference not in remaining and all(
            any(covers(case, other, replay) for covers in others) for other in remaining
        )


# More than 12 devices


def _sorts_unstably(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether HAMi's answer depends on the order of the list, and differs only in devices of equal rank."""
    answer = case["out_per_node"].get(difference.node) or {}
    if "alt_results" not in answer:
        # Other vendors' cases were recorded without other orders of the list.
        return _is_of_like_devices(case, difference)
    if not answer["alt_results"] or len(_list_devices(case, difference.node)) <= _STABLE_SORT:
        return False
    if difference.fact == "MIG":  # follows from the devices, which another difference compares
        return any(other.fact == "devices" and other.node == difference.node for other in replay(case))
    if difference.fact == "devices" and _is_of_equal_devices(case, difference):
        return True
    if difference.fact == "reason" and difference.ours is None:
        # HAMi's other orders place the pod there, and one of them gives the devices that ours does.
        return _allocate(case, difference.node).get(DEVICES_ALLOCATED) in answer["alt_results"]
    return difference.fact in ("devices", "reason") and difference.ours in answer["alt_results"]


def _allocate(case: Case, node: str) -> Mapping[str, str]:
    """Build the annotations that we would write for one node; none if the pod does not fit there."""
    decision = decide(build_cluster(case), build_pod(case["pod"]), [node], get_policy(case))
    return decision.annotations if isinstance(decision, Decision) and decision.allocation else {}


def _is_of_equal_devices(case: Case, difference: Difference) -> bool:
    columns, requests = build_cluster(case), build_requests(case)
    ours, theirs = (str(text).split(";") for text in (difference.ours, difference.theirs))
    for position, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        if mine != their:
            ranks = _rank_devices(case, columns, difference.node, requests[position])
            before = zip(ours[:position], requests[:position], strict=True)
            earlier = [set(_parse_uuids(part)) for part, request in before if not request.is_init]
            return _to_sequence(mine, ranks, earlier) == _to_sequence(their, ranks, earlier)
    return False


def _is_of_like_devices(case: Case, difference: Difference) -> bool:
    """Tell whether the answers differ in devices that are registered alike and idle, and the node has more than 12."""
    ours, theirs = str(difference.ours), str(difference.theirs)
    if not _names_devices(difference) or not _is_of_equal_size(ours, theirs):
        return False
    differing = {*_list_uuids(ours)} ^ {*_list_uuids(theirs)}
    if any(uuid in json.dumps(case["running_pods"]) for uuid in differing):
        return False
    for text in _find_node(case, difference.node)["annotations"].values():
        by_uuid = {str(device.get("id") or device.get("uuid")): device for device in _parse_devices(text)}
        if differing <= by_uuid.keys() and len(by_uuid) > _STABLE_SORT:
            kinds = ({**by_uuid[uuid], "id": "", "index": 0} for uuid in differing)
            return len({json.dumps(kind, sort_keys=True) for kind in kinds}) == 1
    return False


def _list_uuids(text: str) -> list[str]:
    return [uuid for part in text.split(";") for uuid in _parse_uuids(part)]


def _to_sequence(part: str, ranks: Mapping[str, Any], earlier: Sequence[set[str]]) -> list[Any]:
    return [(ranks[uuid], [uuid in taken for taken in earlier]) for uuid in _parse_uuids(part)]


def _parse_uuids(part: str) -> list[str]:
    return [share.split(",")[0] for share in part.split(":") if share]


def _rank_devices(
    case: Case, columns: ClusterColumns, node: str, request: VendorRequest
) -> dict[str, tuple[float, int]]:
    """Rank a node's devices by what they are sorted by first: score and NUMA node."""
    policies = (case["node_scheduler_policy"], case["gpu_scheduler_policy"])
    annotations = read_pod_annotations(case["pod"]["annotations"] or {}, *policies, NVIDIA)
    (devices,) = build_batches(columns, columns.look_up_ids([node]))
    scores = score_devices(
        devices,
        build_device_request(request, annotations, NVIDIA.family),
        annotations.weights,
        np.zeros(devices.rows.shape, np.bool_),
    )
    fragment = columns.get_fragment(node)
    uuids = fragment.uuids if fragment else ()
    return {uuid: (float(scores[slot, 0]), int(devices.numa[slot, 0])) for slot, uuid in enumerate(uuids)}


# Quota


def _takes_apps_for_init_containers(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether our answer is HAMi's with app containers counted as HAMi does for a pod with init containers."""
    inits = len(case["pod"]["initContainers"] or ())
    if not inits:
        return False
    with counted_as_hami_counts(inits):
        return not any(other.node == difference.node for other in replay(case))


# Annotations and reviews


def _refuses_the_colon_form(case: Case, difference: Difference, _: Replay) -> bool:
    """Tell whether HAMi v2.10.0 finds no JSON where we read the form of HAMi up to v2.7, as its reader of it does."""
    if case["fn"] != "node_devices" or case["error"] == "":
        return False
    text = case["in"].get(_REGISTER)
    if not isinstance(text, str) or ":" not in text or text.lstrip().startswith(("[", "{", '"')):
        return False
    return [difference.ours] == list(answer_codec({"fn": "register_colon_decode", "in": text}))


def _crashes_on_null(case: Case, difference: Difference, _: Replay) -> bool:
    null_is_read = case["fn"] in ("register_json_decode", "node_devices") and None in (case["out"] or ())
    return null_is_read and difference.ours == REFUSED


def _has_words_of_gos_library(case: Case, difference: Difference, _: Replay) -> bool:
    """Tell whether both refuse with code 400: only the words of the decoder differ."""
    return difference.fact == "message" and case["out_code"] == 400


def _counts_what_was_asked(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether our answer is HAMi's if MIG instances count as the container asked until it has them all."""
    with patch("engine.fit.judge.checks.reference_fit.is_over", _is_over_by_request):
        return not any(other.node == difference.node for other in replay(case))


def _is_over_by_request(left: QuotaLeft, picks: Sequence[Pick], peaks: Mapping[str, Amounts] | None) -> bool:
    requested = picks[-1]
    counted = [
        pick._replace(memory_mib=requested.memory_mib, cores=requested.cores) if pick.mig else pick for pick in picks
    ]
    return is_over(left, counted, peaks)


# Other vendors


def _counts_none(case: Case, difference: Difference, _: Replay) -> bool:
    """Tell whether HAMi's reason has a count of 0 devices, which ours leaves out."""
    parts = str(difference.theirs).split(", ")
    counted = [part for part in parts if not part.startswith("0/")]
    return difference.fact == "reason" and len(counted) < len(parts) and difference.ours == ", ".join(counted)


def _is_random(case: Case, difference: Difference, replay: Replay) -> bool:
    """Tell whether another run of HAMi gave our devices of the node, or took Ascend910C pairs in another order."""
    others = (case.get("rerun_differs") or {}).get(difference.node)
    if not others:
        return False
    if difference.fact == "score":
        return any(np.float32(other.rpartition("|")[2] or "nan") == difference.ours for other in others)
    if difference.fact == "reason":
        # HAMi's reply may come from another of its runs than its answer about the node.
        reasons = [other.rpartition("|")[0] for other in others]
        return difference.ours in (*reasons, case["out_per_node"][difference.node].get("reason"))
    if not _names_devices(difference):  # follows from the devices, which another difference compares
        return any(_names_devices(other) and other.node == difference.node for other in replay(case))
    answers = [json.loads(other.rsplit("|", 1)[0]) for other in others if other.startswith("{")]
    texts = {word: [answer[word] for answer in answers if word in answer] for answer in answers for word in answer}
    if any(difference.ours in of_vendor for of_vendor in texts.values()):
        return True
    return any(_is_of_equal_size(str(difference.ours), text) for text in texts.get(_PAIRED, ()))


def _names_devices(difference: Difference) -> bool:
    return difference.fact == "devices" or difference.fact.startswith("hami.io/")


def _is_of_equal_size(ours: str, theirs: str) -> bool:
    """Tell whether each container has the same number of devices, each of them once, with the same amounts."""
    shapes = [
        [sorted(share.split(",", 1)[1] for share in part.split(":") if share) for part in text.split(";")]
        for text in (ours, theirs)
    ]
    return shapes[0] == shapes[1] and all(len(set(uuids)) == len(uuids) for uuids in map(_parse_uuids, ours.split(";")))


def _wraps_the_request(case: Case, difference: Difference, _: Replay) -> bool:
    """Tell whether our request is HAMi's with amounts of 19 digits unread and the others in 32 bits.

    HAMi cuts some amounts to 32 bits before it divides them by the number of devices, others as the last step.
    """
    if case["fn"] != "container_request" or not isinstance(difference.ours, dict):
        return False
    return difference.theirs in (_answer_in_32_bits(case, read) for read in (_read_short, _read_wrapped))


def _answer_in_32_bits(case: Case, read: Callable[[Any], int | None]) -> Any:
    with (
        patch("engine.fit.judge.request.pod_request.parse_whole", read),
        patch("engine.fit.judge.request.vendor_requests.parse_whole", read),
    ):
        ours = next(iter(answer_codec(case)))
    if not isinstance(ours, dict):
        return ours
    return {key: wrap(value) if isinstance(value, int) else value for key, value in ours.items()}


def _read_short(value: Any) -> int | None:
    """Read as Go's quantities do: more than 18 digits make a number of another kind, which is no integer to HAMi."""
    digits = _DIGITS.match(str(value))
    return None if digits and len(digits[1].replace(".", "")) > _GO_DIGITS else parse_whole(value)


def _read_wrapped(value: Any) -> int | None:
    number = _read_short(value)
    return None if number is None else wrap(number)


def _wraps_the_review(case: Case, _: Difference, replay: Replay) -> bool:
    """Tell whether our answer to a review is HAMi's with the amounts of requests in 32 bits."""
    with patch("engine.admission.admit.read_request", _read_wrapped_request):
        return not list(replay(case))


def _read_wrapped_request(container: Mapping[str, Any], is_init: bool, vendor: Vendor) -> VendorRequest:
    request = read_request(container, is_init, vendor)
    return replace(request, count=wrap(request.count), memory_mib=wrap(request.memory_mib), cores=wrap(request.cores))


def rename_namespaces(case: Case) -> Case:
    """Rename the namespaces that Kubernetes does not allow: their other characters become dashes."""
    text = json.dumps(case)
    owners = [case.get("pod") or {}, *(case.get("quotas") or ()), *(case.get("running_pods") or ())]
    for namespace in {str(owner.get("namespace") or "") for owner in owners}:
        allowed = re.sub(r"[^a-z0-9-]", "-", namespace.lower())
        text = text.replace(json.dumps(namespace), json.dumps(allowed)) if namespace else text
    renamed: Case = json.loads(text)
    return renamed


KNOWN_NAMES: Final = "Names of namespaces are those of Kubernetes"
LIVE_CORDON: Final = "A changed cordon counts at once"
WIDE_SUMS: Final = "Sums are 64 bits wide"
STABLE_ORDER: Final = "Equal devices keep their order above 12 devices"
MIG_QUOTA: Final = "A MIG instance counts with its size"
FULL_QUOTA: Final = "App containers count fully against a quota"
COLON_FORM: Final = "The registration form of HAMi up to v2.7 is read"
NULL_DEVICE: Final = "A null in a registration is malformed"
DECODER_WORDS: Final = "Words of decoding errors are ours"

FILTER: Final = (
    Rule(LIVE_CORDON, _keeps_the_old_cordon),
    Rule(WIDE_SUMS, _wraps_at_32_bits),
    Rule(STABLE_ORDER, _sorts_unstably),
    Rule(FULL_QUOTA, _takes_apps_for_init_containers),
    Rule(MIG_QUOTA, _counts_what_was_asked),
)
CODEC: Final = (
    Rule(WIDE_SUMS, _wraps_the_request),
    Rule(COLON_FORM, _refuses_the_colon_form),
    Rule(NULL_DEVICE, _crashes_on_null),
)
WEBHOOK: Final = (Rule(DECODER_WORDS, _has_words_of_gos_library), Rule(WIDE_SUMS, _wraps_the_review))
NO_ZERO_COUNTS: Final = "A count of no devices is left out"
RANDOM: Final = "Results that HAMi leaves to chance"
VENDOR_FILTER: Final = (*FILTER, Rule(NO_ZERO_COUNTS, _counts_none), Rule(RANDOM, _is_random))
ALL: Final = (*VENDOR_FILTER, *CODEC[1:], *WEBHOOK)


def _find_node(case: Case, name: str) -> Mapping[str, Any]:
    return next((node for node in case["nodes"] if node["name"] == name), {"annotations": {}})


def _list_devices(case: Case, name: str) -> list[Mapping[str, Any]]:
    """List the devices of a node, as it registers them now or as it did before."""
    node = _find_node(case, name)
    texts: Iterable[Any] = (
        state["annotations"].get(_REGISTER) for state in (node, node.get("previous") or {"annotations": {}})
    )
    return next((devices for text in texts if (devices := _parse_devices(text))), [])


def _parse_devices(text: Any) -> list[Mapping[str, Any]]:
    try:
        devices = json.loads(text)
    except (TypeError, ValueError):
        return []
    return [item for item in devices if _is_device(item)] if isinstance(devices, list) else []


def _is_device(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("devmem", 0), int)
