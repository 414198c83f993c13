"""The verdict on each node and on each of its shared devices, from what KAI printed and from rebuilt memory.

KAI gives no reason for a device; where the memory of a device is known, the reason follows from it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from engine.hami.reason_codes import ReasonCode
from ingest.readers.kai.attempt import KaiAttempt, NodeOfAttempt
from ingest.readers.kai.devices import SharedDevice
from ingest.readers.kai.states import DeviceVerdictRow, StateMemo
from schemas.events import FITS, NOT_REACHED, PICKED, REFUSED, Refusal, Request

INSUFFICIENT_MEMORY: Final = ReasonCode.CARD_INSUFFICIENT_MEMORY.value
IN_USE: Final = ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT.value
GPU_REASON: Final = "Node didn't have enough resources: GPUs"


class NodeVerdict(NamedTuple):
    """One node and its shared devices, each with its verdict."""

    name: str
    verdict: str
    score: float
    shared: DeviceVerdictRow
    verdicts: list[str]
    device_count: int
    refusal: Refusal | None
    checks: Mapping[str, Mapping[str, bool]]
    """By device, what was checked of it."""


def judge_nodes(attempt: KaiAttempt, request: Request, states: StateMemo) -> list[NodeVerdict]:
    """Judge the nodes that KAI looked at, and those that only the fit error names; sorted by name."""
    return [_judge_node(attempt, name, node, request, states) for name, node in sorted(_collect_nodes(attempt).items())]


def derive_request(attempt: KaiAttempt) -> Request:
    """Derive the pod's request. KAI names no container and prints a request for an amount of memory as 0 GPUs."""
    requested = attempt.requested if attempt.requested and attempt.requested.devices else None
    requests_memory = attempt.memory_mib is not None or bool(attempt.job_requested and attempt.job_requested.devices)
    groups = max(attempt.required_devices, len(attempt.groups), 1) if requests_memory else 0
    count = requested.devices if requested else groups
    share = round(requested.share * 100) if requested and requested.share < 1 else None
    memory = attempt.memory_mib if share is None else None
    is_whole = requested is not None and share is None and memory is None
    return Request(
        container="", vendor="NVIDIA" if count else "", count=count, memory_mib=memory,
        memory_percent=share or (100 if is_whole else None), cores_percent=100 if is_whole else 0,
    )  # fmt: skip


def _collect_nodes(attempt: KaiAttempt) -> dict[str, NodeOfAttempt]:
    nodes = dict(attempt.select_nodes())
    for name, why in (attempt.fit_error.nodes if attempt.fit_error else {}).items():
        node = nodes.setdefault(name, NodeOfAttempt())
        # A node that took the pod after all was refused only in an earlier walk.
        if not (node.is_taken and attempt.is_placed):
            node.is_refused, node.reason, node.detail = True, why.reason, why.detail
    return nodes


def _judge_node(
    attempt: KaiAttempt, name: str, node: NodeOfAttempt, request: Request, states: StateMemo
) -> NodeVerdict:
    is_chosen = attempt.is_placed and name == attempt.chosen
    is_refused = not node.is_taken and (node.is_refused or node.is_gpu_refused or _is_unsuccessful(node, attempt))
    shared = states.get_judged(name, node.devices)
    verdicts = _judge_devices(attempt, node, request, is_refused, attempt.groups if is_chosen else [])
    count = max(node.device_count, len(shared.groups))
    refusal = _build_refusal(node, verdicts, count) if is_refused else None
    verdict = PICKED if is_chosen else REFUSED if is_refused else FITS
    score = 0.0 if is_refused else node.score
    return NodeVerdict(name, verdict, score, shared, verdicts, count, refusal, node.checks)


def _is_unsuccessful(node: NodeOfAttempt, attempt: KaiAttempt) -> bool:
    """Tell whether KAI refused the node without a line: no score, no fitting device, and no node was chosen."""
    return not (node.score or node.fitting or attempt.chosen)


def _judge_devices(
    attempt: KaiAttempt, node: NodeOfAttempt, request: Request, is_refused: bool, picked: list[str]
) -> list[str]:
    """Judge the node's shared devices, in the order of their groups."""
    is_whole = request.memory_percent == 100
    if is_refused and not is_whole and attempt.memory_mib is None and not picked:
        # The request is unknown, so all devices of the node are alike; computed once.
        return [INSUFFICIENT_MEMORY if node.is_gpu_refused else NOT_REACHED] * len(node.devices)
    return [
        _judge_device(attempt, node, group, is_whole=is_whole, is_refused=is_refused, picked=picked)
        for group in sorted(node.devices)
    ]


def _judge_device(
    attempt: KaiAttempt, node: NodeOfAttempt, group: str, *, is_whole: bool, is_refused: bool, picked: list[str]
) -> str:
    if group in picked:
        return PICKED
    if not is_refused and group in node.fitting:
        return FITS
    # A pod that requests whole devices never gets one that is shared.
    return IN_USE if is_whole else _judge_shared(attempt, node, node.devices[group], is_refused)


def _judge_shared(attempt: KaiAttempt, node: NodeOfAttempt, device: SharedDevice, is_refused: bool) -> str:
    """Judge a shared device by its memory; without numbers, KAI's refusal of the GPUs implies too little."""
    free = device.free_mib
    if free is not None and attempt.memory_mib is not None:
        # KAI counts releasing memory too: such a pod is pipelined, it waits until the memory is free.
        if attempt.memory_mib > free + (device.releasing_mib or 0):
            return INSUFFICIENT_MEMORY
        return FITS if not is_refused else NOT_REACHED
    if (is_refused and node.is_gpu_refused) or (not is_refused and node.fitting):
        return INSUFFICIENT_MEMORY
    return NOT_REACHED


def _build_refusal(node: NodeOfAttempt, verdicts: list[str], device_count: int) -> Refusal:
    memory, in_use = verdicts.count(INSUFFICIENT_MEMORY), verdicts.count(IN_USE)
    if memory or in_use:
        return _build_counted_refusal(memory, in_use, device_count)
    return Refusal(bare=node.reason or GPU_REASON, cause=node.detail)


@lru_cache(maxsize=256)
def _build_counted_refusal(memory: int, in_use: int, device_count: int) -> Refusal:
    """Build a refusal with counts; cached, because nodes of one kind have the same counts."""
    counts = {INSUFFICIENT_MEMORY: memory, IN_USE: in_use}
    return Refusal(counts={code: count for code, count in counts.items() if count}, devices=device_count)
