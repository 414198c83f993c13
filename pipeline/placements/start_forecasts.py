"""Forecasts of the starts of refused pods: the order and earlier holds from the index, the holders from memory."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from engine.forecasts.starts import begin_forecast, derive_forecast, find_single_ends
from engine.summaries.node_history import NodeKey
from pipeline.placements.device_holdings import DeviceHoldings
from pipeline.placements.input_decoder import RefusedAgain
from pipeline.placements.occupancy_queries import decode_placements, is_first, search_ended_holds, search_pods_before
from pipeline.sinks.msearch import Searchable
from schemas.events import PodWait
from schemas.forecasts import StartForecast
from schemas.placements import PodPlacement

MAX_FORECASTS: Final = 16
"""Limit of the forecasts that are made in one batch."""


async def make_forecasts(
    refusals: Sequence[RefusedAgain], index: Searchable, holdings: DeviceHoldings, now: datetime
) -> dict[str, StartForecast]:
    """Make a forecast for each refused pod, by the id of its attempt."""
    waiting = [(refusal, refusal.wait) for refusal in refusals if refusal.wait]
    if not waiting:
        return {}
    answers = await index.search([search_pods_before(refusal, wait) for refusal, wait in waiting])
    forecasts: dict[str, StartForecast] = {}
    first: list[tuple[RefusedAgain, PodWait, list[PodPlacement]]] = []
    for (refusal, wait), before in zip(waiting, answers, strict=True):
        forecasts[refusal.attempt_id] = begin_forecast(refusal, wait, now)
        if is_first(refusal, before):
            nodes = [NodeKey(refusal.cluster, name) for name in wait.nearest_nodes]
            first.append((refusal, wait, [holder for node in nodes for holder in holdings.list_present(node)]))
    ended = await _read_ended_holds(first, index)
    for refusal, wait, holders in first:
        of_cluster = {namespace: holds for (cluster, namespace), holds in ended.items() if cluster == refusal.cluster}
        forecasts[refusal.attempt_id] = derive_forecast(forecasts[refusal.attempt_id], wait, holders, of_cluster)
    return forecasts


async def _read_ended_holds(
    refused: Sequence[tuple[RefusedAgain, PodWait, list[PodPlacement]]], index: Searchable
) -> dict[tuple[str, str], list[PodPlacement]]:
    """Read the latest ended holds of the namespaces of pods whose end is enough."""
    namespaces = {
        (refusal.cluster, end.pod.namespace)
        for refusal, wait, holders in refused
        for end in find_single_ends(wait, holders)
    }
    ordered = sorted(namespaces)
    answers = await index.search([search_ended_holds(*key) for key in ordered]) if ordered else []
    return {key: decode_placements(hits) for key, hits in zip(ordered, answers, strict=True)}
