"""The first line of an answer: the nearest node and the cheapest proved change, or why a placed pod is where it is.

The diagnosis by itself names the nearest node of the attempt. Who has tried changes, or knows the scores, adds them.
What holds over all nodes, or held when the pod was tried last, is the background: the second line.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.diagnosis.nearest_nodes import find_nearest_nodes
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, describe_duration
from schemas.answers.diagnosis import Diagnosis, InBothLanguages, Obstacle
from schemas.events import AttemptSummarized

if TYPE_CHECKING:
    from schemas.answers.comparisons import PodScores
    from schemas.answers.suggestions import Suggestions

FITS_NOW: Final = "FitsByObjects"
_OF_NODES: Final = "of_nodes"
"""Number of an obstacle that says how many nodes its sentence counts."""
_BIND: Final = "bind"
_CHANGEABLE_LAYERS: Final = ("nodes", _BIND)
"""Layers in which the pod waits for a node."""
_OF_ATTEMPTS: Final = ("attempt", "bind")
"""Kinds of evidence that tell of a scheduler's attempt."""


class Headline(NamedTuple):
    """The first line, and the second one: None where the first says everything."""

    text: InBothLanguages
    background: InBothLanguages | None = None


def write_headline(
    sentence: InBothLanguages, obstacles: Sequence[Obstacle], attempt: AttemptSummarized | None
) -> Headline:
    """Write the headline of a diagnosis. obstacles: the main one first. attempt: the latest one; None without one."""
    tried_at = _find_try(obstacles[0]) if obstacles else None
    if attempt is None or tried_at is None:
        return Headline(sentence)
    if fits := next((obstacle for obstacle in obstacles[1:] if obstacle.code == FITS_NOW), None):
        return Headline(fits.sentence, _describe_try(sentence, tried_at))
    if not _is_distribution(obstacles[0]):
        return Headline(sentence)
    nearest = describe_nearest(attempt)
    return Headline(write_phrase("no_node_took", nearest=nearest), sentence) if nearest else Headline(sentence)


def describe_nearest(attempt: AttemptSummarized) -> InBothLanguages | None:
    """Describe the node of an attempt that lacked least, as an aside; None where no node had a part of the devices."""
    near = find_nearest_nodes(attempt)
    wanted = near.request.count if near and near.request else 0
    if near is None or not near.missing_devices or near.missing_devices >= wanted:
        return None
    node = attempt.nodes[int(near.rows[0])]
    return write_phrase("nearest", node=node, missing=near.missing_devices, wanted=wanted)


def is_changeable(diagnosis: Diagnosis) -> bool:
    """Tell whether the pod waits for a node, so that a change of pod or nodes may let it in."""
    return diagnosis.state != "placed" and diagnosis.layer in _CHANGEABLE_LAYERS


def add_changes(diagnosis: Diagnosis, suggestions: "Suggestions | None") -> Diagnosis:
    """Add the cheapest proved change to the headline, or that the pod fits as it is."""
    if suggestions is None or not is_changeable(diagnosis):
        return diagnosis
    sentence, change = diagnosis.sentence, suggestions.items[0] if suggestions.items else None
    if diagnosis.layer == _BIND:
        # Its node fitted, and its devices may still be counted as the pod's own: only a lock is in its way.
        has_lock = change is not None and suggestions.state == "fits"
        return _with_headline(diagnosis, _join(sentence, change.sentence), None) if change and has_lock else diagnosis
    tried_at = _find_try(diagnosis.obstacle)
    judged_at = datetime.fromisoformat(suggestions.as_of)
    is_earlier = tried_at is not None and tried_at < judged_at
    background = sentence
    if tried_at and is_earlier:
        at_try = _join(diagnosis.headline, diagnosis.background) if diagnosis.background else sentence
        background = _describe_try(at_try, tried_at)
    if change and not is_earlier and not _is_distribution(diagnosis.obstacle):
        return _with_headline(diagnosis, _join(sentence, change.sentence), None)
    if change:
        # Records of an attempt name the nodes that it was offered: the cluster may have others.
        name = "no_offered_takes" if is_earlier else "no_node_takes"
        no_node = write_phrase(name, nearest=suggestions.nearest or NOTHING)
        return _with_headline(diagnosis, _join(no_node, change.sentence), background)
    if suggestions.state == "fits" and tried_at:
        fits = write_phrase(
            "fits_untried", ago=describe_duration(judged_at - tried_at), time=f"{tried_at:%Y-%m-%d %H:%M:%S} UTC"
        )
        return _with_headline(diagnosis, fits, background)
    return diagnosis


def add_choice(diagnosis: Diagnosis, scores: "PodScores | None") -> Diagnosis:
    """Add to the headline of a placed pod which node came next. ``scores``: of the attempt that chose its node."""
    if scores is None or diagnosis.state != "placed" or diagnosis.obstacle:
        return diagnosis
    chosen = next((node.score for node in scores.nodes if node.node == scores.chosen), None)
    other = scores.runner_up
    if chosen is None or (other is None and len(scores.nodes) > 1):
        return diagnosis
    if other is None:
        return _with_headline(diagnosis, _join(diagnosis.sentence, write_phrase("only_fit")), None)
    sign = "=" if not other.behind else "<" if scores.node_policy == "spread" else ">"
    numbers = f"{chosen:.2f} {sign} {other.score:.2f}"
    name = "chosen_by_policy" if scores.node_policy else "chosen_before"
    choice = write_phrase(name, policy=scores.node_policy, other=other.node, numbers=numbers)
    return _with_headline(diagnosis, _join(diagnosis.sentence, choice), None)


def _with_headline(diagnosis: Diagnosis, text: InBothLanguages, background: InBothLanguages | None) -> Diagnosis:
    return diagnosis.model_copy(update={"headline": text, "background": background})


def _is_distribution(obstacle: Obstacle | None) -> bool:
    """Tell whether the sentence of the obstacle counts several nodes."""
    return obstacle is not None and obstacle.numbers.get(_OF_NODES, 0) > 1


def _find_try(obstacle: Obstacle | None) -> datetime | None:
    """Find the time of the scheduler's attempt on which the obstacle stands; None if it does not stand on one."""
    evidence = obstacle.evidence if obstacle else []
    times = [datetime.fromisoformat(source.at) for source in evidence if source.kind in _OF_ATTEMPTS and source.at]
    return max(times, default=None)


def _describe_try(sentence: InBothLanguages, tried_at: datetime) -> InBothLanguages:
    return write_phrase("when_tried", time=f"{tried_at:%Y-%m-%d %H:%M:%S} UTC", sentence=sentence)


def _join(first: InBothLanguages, second: InBothLanguages) -> InBothLanguages:
    return InBothLanguages(en=f"{first.en} {second.en}", zh=f"{first.zh}{second.zh}")
