"""Clauses about the pod itself: what its object has that makes an obstacle which the scheduler words otherwise.

The scheduler does not know that HAMi's webhook passed over the pod, or that its owner wrote an amount where nobody
reads it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.device_parts.volcano import REGISTER
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.webhooks import OF_HAMI, explain_missing_call
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.hami.reason_codes import ReasonCode
from engine.hami.vendor_catalog import is_share_resource
from runtime.kubernetes.object_fields import get_text, iterate_objects

_BY_WEBHOOK: Final = frozenset(
    (
        "ResourceOfExtender",
        "ManagedResourceCounted",
        "ShareOfOtherScheduler",
        "WebhookNotCalled",
        "KubeletPluginUnbound",
    )
)
"""Obstacles of pods that HAMi's webhook did not change."""
_OF_AMOUNTS: Final = frozenset(
    (
        ReasonCode.CARD_INSUFFICIENT_MEMORY, ReasonCode.CARD_INSUFFICIENT_CORE, "MemoryBeyondDevice",
        ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
    )
)  # fmt: skip
"""Obstacles of amounts, which are those of a complete device where the pod names none."""


_UNREADY: Final = "DeviceShareUnready"
"""Obstacle of nodes whose devices Volcano does not know."""
_HELD: Final = "ResourceInUse"
"""Obstacle of nodes whose pods hold what the pod needs."""
_COUNTED: Final = "InsufficientResource"
"""Obstacle of nodes that a scheduler counted and that the judge lets the pod alone have."""


def add_pod_clauses(obstacle: FoundObstacle, facts: DiagnosisFacts) -> FoundObstacle:
    """Add the clauses that the pod's object gives an obstacle."""
    pod = facts.pod
    if pod is None:
        return obstacle
    if obstacle.code == _COUNTED and facts.gang and facts.gang.fitting:
        holds: dict[str, Word] = {"members": facts.gang.members, "members_that_fit": facts.gang.fitting}
        obstacle = obstacle._replace(words={**obstacle.words, **holds}, clauses=[*obstacle.clauses, "gang_holds"])
    words: dict[str, Word] = {}
    if obstacle.code == _UNREADY and (nodes := _list_unregistered(facts)):
        words["unregistered"] = shorten_list(nodes)
    if obstacle.code == _HELD and get_text(pod.spec or {}, "preemptionPolicy") == "Never":
        words["never_preempts"] = "preemptionPolicy: Never"
    if obstacle.code in _BY_WEBHOOK and (names := list(_iterate_privileged(pod.spec or {}))):
        words["privileged"] = shorten_list(names)
    elif obstacle.code in _BY_WEBHOOK and (gap := explain_missing_call(facts, OF_HAMI, "HAMi")):
        words["webhook"] = gap
    if obstacle.code in _OF_AMOUNTS and (keys := sorted(key for key in pod.annotations if is_share_resource(key))):
        words["annotated"] = shorten_list(keys)
    if not words:
        return obstacle
    return obstacle._replace(words={**obstacle.words, **words}, clauses=[*obstacle.clauses, *words])


def _list_unregistered(facts: DiagnosisFacts) -> list[str]:
    """List the nodes that were read and have no registration of Volcano's vGPU devices."""
    return [
        state.name
        for state in facts.nodes or ()
        if state.node and not get_text(state.node, "metadata", "annotations", REGISTER)
    ]


def _iterate_privileged(spec: Mapping[str, Any]) -> Iterator[str]:
    for container in iterate_objects({"spec": spec}, "spec", "containers"):
        context = container.get("securityContext")
        if isinstance(context, Mapping) and context.get("privileged") is True:
            yield get_text(container, "name")
