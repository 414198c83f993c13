"""Messages about finding no node: every sample of the grammar, and texts that are cut, unusual or hostile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers.kube.failure_messages import GRAMMAR, parse_failure

SAMPLES = GRAMMAR["sample"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["scheduler"])
def test_every_sample_is_parsed_as_expected(sample: dict[str, Any]) -> None:
    parsed, expected = parse_failure(sample["text"]), sample["expected"]
    assert parsed.total == expected["total"]
    assert dict(parsed.counts) == expected.get("counts", {})
    assert {name: reason for name, (reason, _) in parsed.nodes.items()} == expected.get("nodes", {})
    assert parsed.error == expected.get("error", "")
    assert parsed.nominated == expected.get("nominated", "")
    assert parsed.origin == expected.get("origin", "")
    assert parsed.is_cut == expected.get("is_cut", False)
    assert parsed.text == sample["text"].strip()


def test_what_preemption_found_is_kept_apart_from_the_counts() -> None:
    parsed = parse_failure(SAMPLES[0]["text"])
    assert parsed.postfilter == (
        "no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    )


def test_a_text_that_is_cut_within_the_preemption_keeps_all_its_counts() -> None:
    parsed = parse_failure(SAMPLES[0]["text"][:150] + " ...")
    assert (parsed.counts, parsed.is_cut) == (
        {"node(s) had untolerated taint(s)": 2, "Insufficient nvidia.com/gpu": 3},
        False,
    )


REASON = st.text(st.characters(codec="utf-8", exclude_characters=",."), min_size=1, max_size=30).filter(
    lambda text: text == text.strip() and not text[0].isdigit() and "preemption" not in text
)


@given(st.dictionaries(REASON, st.integers(1, 9_999_999), min_size=1, max_size=6), st.integers(0, 9_999_999))
def test_any_histogram_is_read_back(counts: dict[str, int], total: int) -> None:
    items = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    parsed = parse_failure(
        f"0/{total} nodes are available: {items}. preemption: not eligible due to preemptionPolicy=Never."
    )
    assert (parsed.total, parsed.counts) == (total, counts)


@given(st.text() | st.text("0123456789/ ,.()[]{}:nodesaruvilb", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for message in (text, f"0/3 nodes are available: {text}", f"1/1 tasks in gang unschedulable: {text}"):
        assert parse_failure(message).text == message.strip()
