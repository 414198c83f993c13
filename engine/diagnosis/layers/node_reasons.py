"""Nodes' reasons in a scheduler's text about another pod, in the words of this project's obstacles.

A text about a gang quotes the refusal of the member that is to blame: ``0/3 nodes are unavailable: 2 Insufficient
nvidia.com/gpu, 1 …``. `ingest.readers.kube.failure_messages` parses a pod's own refusal in full; here only the counts
are wanted.
"""

from collections.abc import Iterator
from typing import Final

from engine.diagnosis.counted_reasons import parse_counted_reasons
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import find_obstacle_of_reason, write_phrase, write_sentence
from engine.diagnosis.wording import NOTHING, describe_share, quote
from schemas.answers.diagnosis import InBothLanguages

_MAX_REASONS: Final = 3


def describe_reasons(facts: DiagnosisFacts, text: str) -> InBothLanguages:
    """Describe the counted reasons as sentences; a text without counts is quoted."""
    obstacles = list(iterate_reasons(facts, text))[:_MAX_REASONS]
    if not obstacles:
        return InBothLanguages(en=quote(text), zh=quote(text))
    sentences = [write_sentence(obstacle) for obstacle in obstacles]
    return InBothLanguages(
        en="; ".join(sentence.en.rstrip(".") for sentence in sentences),
        zh="；".join(sentence.zh.rstrip("。") for sentence in sentences),
    )


def iterate_reasons(facts: DiagnosisFacts, text: str) -> Iterator[FoundObstacle]:
    """Iterate over the obstacles of the reasons that a text counts, that of most nodes first."""
    counted = parse_counted_reasons(text)
    if counted is None:
        return
    total = counted.total
    for reason, count in sorted(counted.reasons, key=lambda entry: -entry[1]):
        code, details = find_obstacle_of_reason(reason)
        if code == "InsufficientResource" and facts.nodes is None and "/" in details:
            code = "ResourceShortOrMissing"
        words: dict[str, Word] = {
            "refused": count,
            "of": total,
            "share": describe_share(count, total, write_phrase("looked_at") if total == 1 else NOTHING),
            "resource": details,
            "words": quote(details),
            "namespace": facts.namespace,
            "scheduler": facts.pod.scheduler if facts.pod else "",
        }
        yield FoundObstacle(code, words, {"nodes": count, "of_nodes": total}, node_count=count)
