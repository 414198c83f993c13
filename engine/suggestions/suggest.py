"""Entry point: all suggestions for one pod on one cluster."""

from types import MappingProxyType
from typing import Final

from engine.suggestions.acts import Holders, suggest_administrator_acts, suggest_pods_to_end
from engine.suggestions.ask import Ask
from engine.suggestions.nodes import UnregisteredNodes, suggest_registration
from engine.suggestions.search import suggest_own_changes
from engine.suggestions.suggestion import Suggestion, select_pareto
from engine.suggestions.trial import Trial

NOT_KNOWN: Final[Holders] = MappingProxyType({})


def suggest(
    trial: Trial, ask: Ask, holders_on: Holders = NOT_KNOWN, unregistered: UnregisteredNodes | None = None
) -> list[Suggestion]:
    """Suggest changes after which the pod fits, the cheapest first; none if it already fits, or requests no device.

    No suggestion gives up at least as much of everything as another one. All are proved on `trial`'s cluster.
    holders_on: of `acts.list_nodes_to_empty`.
    """
    if not any(request.asks for request in ask.requests) or trial.fits(ask):
        return []
    suggestions = [
        *suggest_own_changes(trial, ask),
        *suggest_administrator_acts(trial, ask),
        *suggest_pods_to_end(trial, ask, holders_on),
    ]
    return select_pareto([*suggestions, *(suggest_registration(trial, ask, unregistered) if unregistered else ())])
