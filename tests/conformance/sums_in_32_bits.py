"""HAMi's memory arithmetic, brought about in our fit: `wrap`, where a number that is too large becomes negative.

`gpu_policy.go`, `node_policy.go` and each vendor's `Fit` multiply, add and subtract MiB in this width.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partialmethod
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.judge.choose import batch_evaluation
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.choose.scoring import NodeScores, score_devices, score_nodes
from engine.fit.judge.judgement import ContainerJudgement
from engine.fit.judge.request.device_request import DeviceRequest, compute_percent
from engine.fit.judge.request.pod_annotations import ScoringWeights
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.quantities import UNSET_PERCENT


def wrap(number: Any) -> Any:
    """Wrap a number, or each of an array, at 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


@contextmanager
def counted_in_32_bits() -> Iterator[None]:
    """Within it, every pod is judged with the memory of devices, requests and nodes in 32 bits."""
    with (
        patch.object(DeviceRequest, "resolve_memory", _derive_memory),
        patch.object(BatchEvaluation, "judge", partialmethod(_judge, BatchEvaluation.judge)),
        patch.object(batch_evaluation, "score_devices", _score_devices),
        patch("engine.fit.judge.decide.score_nodes", _score_nodes),
    ):
        yield


def _derive_memory(request: DeviceRequest, total: Any) -> Any:
    if request.memory_mib > 0 or request.memory_percentage == UNSET_PERCENT:
        return total * 0 + request.memory_mib
    product = wrap(total * request.memory_percentage)
    return compute_percent(product, 1)  # of which HAMi, too, takes the hundredth towards zero


def _judge(evaluation: BatchEvaluation, judge: Any, container: int, request: VendorRequest) -> ContainerJudgement:
    # As much used as makes what is left, which the checks compare with the request, the difference in 32 bits.
    matrix = evaluation._matrix
    matrix.used_memory = matrix.total_memory - wrap(matrix.total_memory - matrix.used_memory)
    judgement: ContainerJudgement = judge(evaluation, container, request)
    return judgement


def _score_devices(
    matrix: DeviceMatrix, request: DeviceRequest, weights: ScoringWeights, bare: NDArray[np.bool_]
) -> NDArray[np.float32]:
    # Where the request counts too (`counts_request`), the sum has this width; its share is multiplied in 64 bits.
    more = np.where(bare, request.resolve_scored_memory(matrix.total_memory), 0)
    used_memory = wrap(matrix.used_memory + more) - more
    return score_devices(replace(matrix, used_memory=used_memory), request, weights, bare)


def _score_nodes(used: Sequence[Ints], totals: Sequence[Ints]) -> NodeScores:
    return score_nodes([wrap(amount) for amount in used], [wrap(total) for total in totals])
