"""All suggestions for one pod on one cluster."""

from collections.abc import Mapping, Sequence

from diagnosis.suggestions.acts import PodsOn, administrators_acts, pods_to_end
from diagnosis.suggestions.ask import Ask
from diagnosis.suggestions.search import own_changes
from diagnosis.suggestions.suggestion import Suggestion, pareto
from diagnosis.suggestions.trial import Trial
from fit.devices.pod_usage import PodUse


def no_pods(nodes: Sequence[str]) -> Mapping[str, Mapping[str, PodUse]]:  # noqa: ARG001
    """Where it is not known which pods hold what."""
    return {}


def suggest(trial: Trial, ask: Ask, pods_on: PodsOn = no_pods) -> list[Suggestion]:
    """The changes after which the pod fits, the cheapest first; none where it fits as it is, or asks for no device.

    None of them gives up more than another one of everything. All are proved on `trial`'s cluster.
    """
    if not any(request.asks for request in ask.requests) or trial.decide(ask):
        return []
    return pareto([*own_changes(trial, ask), *administrators_acts(trial, ask), *pods_to_end(trial, ask, pods_on)])
