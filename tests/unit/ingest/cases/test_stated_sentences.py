"""Sentences of schedulers in prose: reported ones are read without the words around them, mentioned ones are not."""

import pytest

from ingest.cases.pasted_rows import parse_statement

DEVICES = "0/6 nodes are available: 6 Insufficient amd.com/gpu."


@pytest.mark.parametrize(
    "line",
    [
        DEVICES,
        f'We see: "{DEVICES}" and nothing besides. Why?',
        f"My pod gets {DEVICES} What can I do?",
        f"It says `{DEVICES}`, which I do not understand",
        f"When it runs, the page has a yellow banner for it: `Step in Pending state, message: {DEVICES}` Since 10m",
        f"status pending {DEVICES}",
        f'  message: "{DEVICES}"',
        f"I get the error {DEVICES} The nodes have devices.",
    ],
)
def test_a_reported_sentence_is_read_without_the_authors_words(line: str) -> None:
    event = parse_statement(line)
    assert event is not None
    assert event.note == DEVICES


def test_words_behind_a_comma_are_the_authors() -> None:
    event = parse_statement(f"Pod has {DEVICES[:-1]}, what should I do?")
    assert event is not None
    assert event.note == DEVICES[:-1]


@pytest.mark.parametrize(
    "line",
    [
        "Why would it say 0/6 nodes are available: I have six nodes with eight cards each!",
        f"Before the upgrade the pod had {DEVICES} That is solved.",
        f"It no longer shows {DEVICES}",
        "Failed to create pod sandbox: is that related to the operator? No other message.",
        "In our case pod didn't trigger scale-up because somebody had switched the autoscaler off.",
        'I was told that an admission webhook "x" denied the request: would look different.',
        "Node didn't have enough resource: how do I find out which?",
    ],
)
def test_a_mentioned_sentence_is_no_event(line: str) -> None:
    assert parse_statement(line) is None


@pytest.mark.parametrize(
    "words",
    [
        f"{DEVICES} preemption: 0/6 nodes are available: 6 No preemption victims found for incoming pod.",
        "0/6 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: not helpful.",
        'admission webhook "check.example.com" denied the request: You must set your team. Please ask us in #gpu.',
        "pod didn't trigger scale-up: 2 max node group size reached",
        'running Permit plugin "Coscheduling": rejected due to timeout',
        "Allocate failed due to requested number of devices unavailable for amd.com/gpu. Requested: 2, Available: 1",
    ],
)
def test_the_words_of_a_component_are_whole(words: str) -> None:
    event = parse_statement(words)
    assert event is not None
    assert event.note == words
