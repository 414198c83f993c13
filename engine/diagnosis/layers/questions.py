"""Order of the layers: what stands before the scheduler, what fails after it, and last an autoscaler's word."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.autoscalers import check_autoscaler
from engine.diagnosis.layers.chosen_nodes import check_choice
from engine.diagnosis.layers.components import PLUGIN_DOWN, PLUGIN_WITHOUT_NODE, check_components
from engine.diagnosis.layers.device_claims import ELSEWHERE, check_device_claims
from engine.diagnosis.layers.gangs import check_gang
from engine.diagnosis.layers.kai_pools import check_pool
from engine.diagnosis.layers.kueue import check_flavor
from engine.diagnosis.layers.queues import check_queues
from engine.diagnosis.layers.reservations import check_reservation
from engine.diagnosis.layers.slurm import check_slurm
from engine.diagnosis.layers.volumes import NOT_AVAILABLE, OUT_OF_REACH, check_claims
from engine.diagnosis.layers.webhooks import NOT_TAKEN, check_kueue_webhook
from engine.diagnosis.outcome import TreeStep

Check = Callable[[DiagnosisFacts], Iterator[TreeStep]]

_BEFORE_NODES: Final[tuple[Check, ...]] = (
    check_claims,
    check_device_claims,
    check_queues,
    check_gang,
    check_pool,
    check_flavor,
    check_components,
    check_kueue_webhook,
)
_AFTER_CHOICE: Final[tuple[Check, ...]] = (check_reservation, check_slurm, check_choice)
_NEXT_TO_NODES: Final = frozenset(
    (OUT_OF_REACH, NOT_AVAILABLE, "ClaimUnbound", ELSEWHERE, PLUGIN_DOWN, PLUGIN_WITHOUT_NODE, NOT_TAKEN)
)
"""Obstacles after which the scheduler's verdicts on nodes still say more."""


def answer_layer_questions(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Ask the layers before the nodes, then those after the choice until one explains the failure."""
    is_explained = False
    for check in _BEFORE_NODES:
        steps = list(check(facts))
        yield from steps
        is_explained = is_explained or explains_wait(steps)
        # A group that its queue does not let in is not judged as a gang.
        if check is check_queues and is_explained:
            break
    for check in _AFTER_CHOICE:
        steps = [] if is_explained else list(check(facts))
        yield from steps
        is_explained = is_explained or bool(steps)
    # Of a pod without an object only its events are left, which are as young as its attempt.
    if facts.is_latest or (facts.pod is None and facts.events):
        yield from check_autoscaler(facts)


def explains_wait(steps: Iterable[TreeStep]) -> bool:
    """Tell whether a layer explains the wait: then neither the scheduler nor its verdicts on nodes are in question."""
    autoscaler = (
        "AutoscalerAdds",
        "AutoscalerAdded",
        "AutoscalerLate",
        "AutoscalerCannot",
        "AutoscalerFailed",
        "NodeNotLaunched",
    )
    codes = {obstacle.code for step in steps for obstacle in step.obstacles}
    return bool(codes - _NEXT_TO_NODES - set(autoscaler))
