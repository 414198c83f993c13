"""HAMi's count of app containers against a quota, brought about in our fit (`CollapseInitContainerUsage`).

For a pod with N init containers HAMi takes the first N of the app containers that ask for devices for init containers.
On each device the largest of those counts, or the sum of the later ones if that is more.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks.fit import FirstRefusals
from engine.fit.judge.checks.reference_fit import Amounts, Peaks, Pick, ReferenceFit, is_over, raise_peaks
from engine.fit.judge.checks.sequential_fit import QuotaColumns
from engine.fit.judge.choose import batch_evaluation
from engine.fit.judge.choose.per_node import Placed, fit_node_by_node
from engine.fit.judge.request.device_request import DeviceRequest
from engine.fit.judge.request.pod_constraints import PodConstraints


@contextmanager
def counted_as_hami_counts(inits: int) -> Iterator[None]:
    """Within it, a pod of so many init containers is judged with HAMi's count, one node and one device at a time."""
    earlier: defaultdict[int, list[Sequence[Pick]]] = defaultdict(list)
    judge = partial(_fit_node_by_node, inits, earlier)
    initialize = batch_evaluation.BatchEvaluation.__init__

    def initialize_one_by_one(
        evaluation: object, constraints: Mapping[str, PodConstraints], *arguments: object, **options: object
    ) -> None:
        earlier.clear()
        initialize(
            evaluation,  # type: ignore[arg-type]
            {vendor: pod_constraints._replace(one_by_one=True) for vendor, pod_constraints in constraints.items()},
            *arguments,  # type: ignore[arg-type]
            **options,  # type: ignore[arg-type]
        )

    with (
        patch.object(batch_evaluation.BatchEvaluation, "__init__", initialize_one_by_one),
        patch.object(batch_evaluation, "fit_node_by_node", judge),
    ):
        yield


def _fit_node_by_node(
    inits: int,
    earlier: dict[int, list[Sequence[Pick]]],
    constraints: PodConstraints,
    matrix: DeviceMatrix,
    request: DeviceRequest,
    checks: FirstRefusals,
    order: Ints,
    quota: QuotaColumns | None,
    placed: Placed,
    peaks: Peaks | None = None,
) -> list[ReferenceFit]:
    """Judge with the picks of the app containers before this one, which ``earlier`` has by node id."""
    if peaks is not None or quota is None:
        return fit_node_by_node(constraints, matrix, request, checks, order, quota, placed, peaks)
    left = constraints.quota_left
    full_quota = QuotaColumns(np.array([left.memory_mib]), np.array([left.cores]))
    fits = []
    for position, node in enumerate(matrix.ids.tolist()):
        alone = np.array([position])
        over = partial(_is_over, inits, earlier[node])
        with patch("engine.fit.judge.checks.reference_fit.is_over", over):
            parts = (matrix.select(alone), request, checks.select(alone), order[:, alone], full_quota, placed)
            fits += fit_node_by_node(constraints, *parts)
        earlier[node].append(fits[-1].picks)
    return fits


def _is_over(
    inits: int,
    earlier: Sequence[Sequence[Pick]],
    left: QuotaLeft,
    picks: Sequence[Pick],
    peaks: Mapping[str, Amounts] | None,
) -> bool:
    if peaks is not None:
        return is_over(left, picks, peaks)
    containers = [*earlier, picks]
    largest: dict[str, Amounts] = {}
    for taken in containers[:inits]:
        largest = raise_peaks(largest, taken)
    later: dict[str, Amounts] = {}
    for taken in containers[inits:]:
        for pick in taken:
            memory_mib, cores = later.get(pick.device.uuid, (0, 0))
            later[pick.device.uuid] = (memory_mib + pick.memory_mib, cores + pick.cores)
    devices = largest.keys() | later.keys()
    larger = [tuple(map(max, largest.get(uuid, (0, 0)), later.get(uuid, (0, 0)))) for uuid in devices]
    memory = sum(memory_mib for memory_mib, _ in larger)
    return memory > left.memory_mib or sum(cores for _, cores in larger) > left.cores
