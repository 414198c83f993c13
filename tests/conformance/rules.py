"""Where HAMi v2.10.0 is wrong and we answer otherwise on purpose: rules about behaviour, never about a case's number.

A rule must hold for each difference that it explains. Where HAMi's defect can be brought about through the input, the
rule does so and asks for the very answer that HAMi gave. The reasons stand in docs/hami-differences.md, under the
rule's name.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import batches
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks.reference_fit import Amounts, Pick, is_over
from engine.fit.judge.choose.scoring import device_scores
from engine.fit.judge.request.device_request import device_request_of
from engine.fit.judge.request.pod_annotations import read_pod_annotations
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.quantities import whole
from engine.hami.vendors import NVIDIA
from tests.conformance.cluster import cluster_of, requests_of
from tests.conformance.codec_replay import REFUSED, codec_answer
from tests.conformance.difference import Case, Difference
from tests.conformance.quota_of_apps import counted_as_hami_counts
from tests.conformance.sums_in_32_bits import counted_in_32_bits, int32

Replay = Callable[[Case], Iterable[Difference]]

_REGISTER: Final = "hami.io/node-nvidia-register"
_CORDON: Final = "hami.io/device-cordon"
_STABLE_SORT: Final = 12
_PAIRED: Final = "Ascend910C"


@dataclass(frozen=True, slots=True)
class Rule:
    """name: its heading in the document. covers: whether it explains a difference, given how the case is replayed."""

    name: str
    covers: Callable[[Case, Difference, Replay], bool]


def explained(rules: Iterable[Rule], case: Case, differences: Sequence[Difference], replay: Replay) -> list[str]:
    """The rules behind all differences of a case; none if any difference has none.

    Another node may be chosen only because a node's score or fit is explained.
    """
    about_nodes = [found for found in differences if found.about != "chosen"]
    names = [_rule_of(rules, case, found, replay) for found in about_nodes]
    return sorted(set(names)) if all(names) else []


def _rule_of(rules: Iterable[Rule], case: Case, difference: Difference, replay: Replay) -> str:
    return next((rule.name for rule in rules if rule.covers(case, difference, replay)), "")


# Cordon


def _keeps_the_old_cordon(case: Case, difference: Difference, replay: Replay) -> bool:
    """With the cordon that the node had before, our answer about the node is HAMi's, or differs by another rule."""
    node = _node(case, difference.node)
    before = (node.get("previous") or {}).get("annotations")
    if before is None or before.get(_CORDON) == node["annotations"].get(_CORDON):
        return False
    kept = {key: value for key, value in node["annotations"].items() if key != _CORDON}
    if _CORDON in before:
        kept[_CORDON] = before[_CORDON]
    nodes = [{**candidate, "annotations": kept} if candidate is node else candidate for candidate in case["nodes"]]
    before_case = {**case, "nodes": nodes}
    rest = [found for found in replay(before_case) if found.node == difference.node]
    others = (_wraps_at_32_bits, _sorts_unstably, _takes_apps_for_init_containers)
    return all(any(covers(before_case, found, replay) for covers in others) for found in rest)


# 32 bits


def _wraps_at_32_bits(case: Case, difference: Difference, replay: Replay) -> bool:
    """With HAMi's memory arithmetic in 32 bits, our answer about the node is HAMi's, or differs by another rule."""
    with counted_in_32_bits():
        rest = [found for found in replay(case) if found.node == difference.node]
        others = (_sorts_unstably, _takes_apps_for_init_containers)
        return difference not in rest and all(any(covers(case, found, replay) for covers in others) for found in rest)


# More than 12 devices


def _sorts_unstably(case: Case, difference: Difference, replay: Replay) -> bool:
    """HAMi's own answer depends on the order of the list, and differs from ours only in devices of equal rank."""
    answer = case["out_per_node"].get(difference.node) or {}
    if not answer.get("alt_results") or len(_devices(case, difference.node)) <= _STABLE_SORT:
        return False
    if difference.about == "MIG":  # follows from the devices, which another difference compares
        return any(found.about == "devices" and found.node == difference.node for found in replay(case))
    if difference.about == "devices" and _parts_at_equal_devices(case, difference):
        return True
    return difference.about in ("devices", "reason") and difference.ours in answer["alt_results"]


def _parts_at_equal_devices(case: Case, difference: Difference) -> bool:
    columns, requests = cluster_of(case), requests_of(case)
    ours, theirs = (str(text).split(";") for text in (difference.ours, difference.theirs))
    for place, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        if mine != their:
            ranks = _ranks(case, columns, difference.node, requests[place])
            before = zip(ours[:place], requests[:place], strict=True)
            earlier = [set(_uuids(part)) for part, request in before if not request.is_init]
            return _sequence(mine, ranks, earlier) == _sequence(their, ranks, earlier)
    return False


def _sequence(part: str, ranks: Mapping[str, Any], earlier: Sequence[set[str]]) -> list[Any]:
    return [(ranks[uuid], [uuid in taken for taken in earlier]) for uuid in _uuids(part)]


def _uuids(part: str) -> list[str]:
    return [share.split(",")[0] for share in part.split(":") if share]


def _ranks(case: Case, columns: ClusterColumns, node: str, request: VendorRequest) -> dict[str, tuple[float, int]]:
    """What a node's devices are sorted by first: score and NUMA node."""
    policies = (case["node_scheduler_policy"], case["gpu_scheduler_policy"])
    annotations = read_pod_annotations(case["pod"]["annotations"] or {}, *policies, NVIDIA)
    (devices,) = batches(columns, columns.ids([node]))
    scores = device_scores(
        devices,
        device_request_of(request, annotations, NVIDIA.family),
        annotations.weights,
        np.zeros(devices.rows.shape, np.bool_),
    )
    fragment = columns.node_fragment(node)
    uuids = fragment.uuids if fragment else ()
    return {uuid: (float(scores[slot, 0]), int(devices.numa[slot, 0])) for slot, uuid in enumerate(uuids)}


# Quota


def _takes_apps_for_init_containers(case: Case, difference: Difference, replay: Replay) -> bool:
    """With app containers counted as HAMi counts them for a pod with init containers, our answer is HAMi's."""
    inits = len(case["pod"]["initContainers"] or ())
    if not inits:
        return False
    with counted_as_hami_counts(inits):
        return not any(found.node == difference.node for found in replay(case))


# Annotations and reviews


def _refuses_the_colon_form(case: Case, difference: Difference, _: Replay) -> bool:
    """We read what HAMi up to v2.7 wrote, as HAMi's own reader of that form does; HAMi v2.10 finds no JSON there."""
    if case["fn"] != "node_devices" or case["error"] == "":
        return False
    text = case["in"].get(_REGISTER)
    if not isinstance(text, str) or ":" not in text or text.lstrip().startswith(("[", "{", '"')):
        return False
    return [difference.ours] == list(codec_answer({"fn": "register_colon_decode", "in": text}))


def _crashes_on_null(case: Case, difference: Difference, _: Replay) -> bool:
    null_is_read = case["fn"] in ("register_json_decode", "node_devices") and None in (case["out"] or ())
    return null_is_read and difference.ours == REFUSED


def _words_of_gos_library(case: Case, difference: Difference, _: Replay) -> bool:
    """Both refuse with code 400; only the words of the decoder are not the same."""
    return difference.about == "message" and case["out_code"] == 400


def _counts_what_was_asked(case: Case, difference: Difference, replay: Replay) -> bool:
    """With MIG instances counted by what the container asked for until it has them all, our answer is HAMi's."""
    with patch("engine.fit.judge.checks.reference_fit.is_over", _is_over_by_request):
        return not any(found.node == difference.node for found in replay(case))


def _is_over_by_request(left: QuotaLeft, picks: Sequence[Pick], peaks: Mapping[str, Amounts] | None) -> bool:
    asked = picks[-1]
    counted = [pick._replace(memory_mib=asked.memory_mib, cores=asked.cores) if pick.mig else pick for pick in picks]
    return is_over(left, counted, peaks)


# Other vendors


def _counts_none(case: Case, difference: Difference, _: Replay) -> bool:
    """HAMi's reason with a count of 0 devices, which ours leaves out."""
    parts = str(difference.theirs).split(", ")
    kept = [part for part in parts if not part.startswith("0/")]
    return difference.about == "reason" and len(kept) < len(parts) and difference.ours == ", ".join(kept)


def _is_random(case: Case, difference: Difference, replay: Replay) -> bool:
    """Another run of HAMi itself gave our devices of the node, or took pairs of Ascend910C in another order."""
    others = (case.get("rerun_differs") or {}).get(difference.node)
    if not others:
        return False
    if difference.about == "score":
        return any(np.float32(other.rpartition("|")[2] or "nan") == difference.ours for other in others)
    if difference.about == "reason":
        return any(other.rpartition("|")[0] == difference.ours for other in others)
    if not _names_devices(difference):  # follows from the devices, which another difference compares
        return any(_names_devices(found) and found.node == difference.node for found in replay(case))
    answers = [json.loads(other.rsplit("|", 1)[0]) for other in others if other.startswith("{")]
    texts = {word: [answer[word] for answer in answers if word in answer] for answer in answers for word in answer}
    if any(difference.ours in of_vendor for of_vendor in texts.values()):
        return True
    return any(_is_of_equal_size(str(difference.ours), text) for text in texts.get(_PAIRED, ()))


def _names_devices(difference: Difference) -> bool:
    return difference.about == "devices" or difference.about.startswith("hami.io/")


def _is_of_equal_size(ours: str, theirs: str) -> bool:
    """The same number of devices for each container, each of them once, with the same amounts."""
    shapes = [
        [sorted(share.split(",", 1)[1] for share in part.split(":") if share) for part in text.split(";")]
        for text in (ours, theirs)
    ]
    return shapes[0] == shapes[1] and all(len(set(uuids)) == len(uuids) for uuids in map(_uuids, ours.split(";")))


def _wraps_the_request(case: Case, difference: Difference, _: Replay) -> bool:
    """Our request, with amounts of 19 digits unread and the others in 32 bits, is HAMi's."""
    if case["fn"] != "container_request" or not isinstance(difference.ours, dict):
        return False
    with (
        patch("engine.fit.judge.request.pod_request.whole", _shorter),
        patch("engine.fit.judge.request.vendor_requests.whole", _shorter),
    ):
        ours = next(iter(codec_answer(case)))
    return {key: int32(value) if isinstance(value, int) else value for key, value in ours.items()} == difference.theirs


def _shorter(value: Any) -> int | None:
    found = whole(value)
    return None if found is None or abs(found) >= 10**18 else found


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
WEBHOOK: Final = (Rule(DECODER_WORDS, _words_of_gos_library),)
NO_ZERO_COUNTS: Final = "A count of no devices is left out"
RANDOM: Final = "What HAMi leaves to chance"
VENDOR_FILTER: Final = (*FILTER, Rule(NO_ZERO_COUNTS, _counts_none), Rule(RANDOM, _is_random))
ALL: Final = (*VENDOR_FILTER, *CODEC[1:], *WEBHOOK)


def _node(case: Case, name: str) -> Mapping[str, Any]:
    return next((node for node in case["nodes"] if node["name"] == name), {"annotations": {}})


def _devices(case: Case, name: str) -> list[Mapping[str, Any]]:
    """The devices of a node, as it registers them now or as it did before."""
    node = _node(case, name)
    texts: Iterable[Any] = (
        state["annotations"].get(_REGISTER) for state in (node, node.get("previous") or {"annotations": {}})
    )
    return next((found for text in texts if (found := _listed(text))), [])


def _listed(text: Any) -> list[Mapping[str, Any]]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return []
    return [item for item in found if _is_device(item)] if isinstance(found, list) else []


def _is_device(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("devmem", 0), int)
