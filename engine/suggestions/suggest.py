"""All suggestions for one pod on one cluster."""

from types import MappingProxyType
from typing import Final

from engine.suggestions.acts import Holders, administrators_acts, pods_to_end
from engine.suggestions.ask import Ask
from engine.suggestions.nodes import UnregisteredNodes, node_to_register
from engine.suggestions.search import own_changes
from engine.suggestions.suggestion import Suggestion, pareto
from engine.suggestions.trial import Trial

NOT_KNOWN: Final[Holders] = MappingProxyType({})


def suggest(
    trial: Trial, ask: Ask, holders_on: Holders = NOT_KNOWN, unregistered: UnregisteredNodes | None = None
) -> list[Suggestion]:
    """The changes after which the pod fits, the cheapest first; none where it fits as it is, or asks for no device.

    None of them gives up more than another one of everything. All are proved on `trial`'s cluster. holders_on: of
    `acts.nodes_to_empty`.
    """
    if not any(request.asks for request in ask.requests) or trial.fits(ask):
        return []
    found = [*own_changes(trial, ask), *administrators_acts(trial, ask), *pods_to_end(trial, ask, holders_on)]
    return pareto([*found, *(node_to_register(trial, ask, unregistered) if unregistered else ())])
