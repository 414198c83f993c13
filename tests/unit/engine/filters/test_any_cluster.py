"""Broken clusters: every object that cannot be read has a sentence, and everything else is judged."""

from itertools import islice
from typing import Any

import pytest

from engine.filters.judge import judge
from engine.snapshot.fields import RejectedObject, quote
from engine.snapshot.reading import read_snapshot
from tests.fuzz.snapshots import feed_snapshots
from tests.support.builders.cluster import a_node, a_pod


@pytest.mark.parametrize("seed", [1, 2])
def test_broken_clusters_are_judged_or_named(seed: int) -> None:
    outcomes = list(islice(feed_snapshots(150, seed), 150))
    assert {"unfit", "fits", "pod rejected"} <= set(outcomes)


def test_a_sentence_escapes_what_a_terminal_would_act_on_and_is_short() -> None:
    rejected = RejectedObject("Pod\x1b[31m", "n" * 5_000, "p", "spec\n", "is wrong")
    sentence = rejected.to_sentence()
    assert sentence.isprintable()
    assert "\\x1b[31m" in sentence
    assert len(sentence) < 1_100


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("x" * 5_000, "'" + "x" * 60 + "'…", id="text"),
        pytest.param(10**5_000, "a number of 16610 bits", id="integer"),
        ([1, 2], "a list of 2 entries"),
        ({}, "a mapping of 0 entries"),
        (None, "None"),
    ],
)
def test_a_quoted_value_is_short(value: Any, text: str) -> None:
    assert quote(value) == text


@pytest.mark.parametrize("phase", [[], {}, 7, None])
def test_a_phase_of_the_wrong_type_is_not_an_end(phase: Any) -> None:
    pod = a_pod("other", node="n1", cpu="8")
    pod["status"]["phase"] = phase
    judgement = judge(read_snapshot([a_node(), pod]), a_pod(cpu="1"))
    assert not isinstance(judgement, RejectedObject)
    assert judgement.counts == {"Insufficient cpu": 1}
