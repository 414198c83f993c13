"""What schedulers write when no node fits: every sample of the grammar, and texts that are cut, odd or hostile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.kube.failure_messages import GRAMMAR, refused

SAMPLES = GRAMMAR["sample"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["scheduler"])
def test_every_sample_says_what_the_grammar_says_it_says(sample: dict[str, Any]) -> None:
    found, said = refused(sample["text"]), sample["said"]
    assert found.total == said["total"]
    assert dict(found.counts) == said.get("counts", {})
    assert {name: reason for name, (reason, _) in found.nodes.items()} == said.get("nodes", {})
    assert found.error == said.get("error", "")
    assert found.nominated == said.get("nominated", "")
    assert found.origin == said.get("origin", "")
    assert found.is_cut == said.get("is_cut", False)
    assert found.text == sample["text"].strip()


def test_what_preemption_found_is_kept_apart_from_the_counts() -> None:
    found = refused(SAMPLES[0]["text"])
    assert found.behind == (
        "no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    )


def test_a_text_that_is_cut_within_the_preemption_keeps_all_its_counts() -> None:
    found = refused(SAMPLES[0]["text"][:150] + " ...")
    assert (found.counts, found.is_cut) == (
        {"node(s) had untolerated taint(s)": 2, "Insufficient nvidia.com/gpu": 3},
        False,
    )


REASON = st.text(st.characters(codec="utf-8", exclude_characters=",."), min_size=1, max_size=30).filter(
    lambda text: text == text.strip() and not text[0].isdigit() and "preemption" not in text
)


@given(st.dictionaries(REASON, st.integers(1, 9_999_999), min_size=1, max_size=6), st.integers(0, 9_999_999))
def test_any_histogram_is_read_back(counts: dict[str, int], total: int) -> None:
    items = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    found = refused(f"0/{total} nodes are available: {items}. preemption: not eligible due to preemptionPolicy=Never.")
    assert (found.total, found.counts) == (total, counts)


@given(st.text() | st.text("0123456789/ ,.()[]{}:nodesaruvilb", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for each in (text, f"0/3 nodes are available: {text}", f"1/1 tasks in gang unschedulable: {text}"):
        assert refused(each).text == each.strip()
