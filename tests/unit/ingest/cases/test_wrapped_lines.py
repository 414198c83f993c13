"""Lines that a terminal or a mail program broke are read as they were, and other texts stay as they are."""

import textwrap
from datetime import UTC, datetime
from typing import Final

import pytest

from ingest.cases.pasted_texts import parse_pasted
from ingest.cases.read_case import read_case_text
from ingest.cases.wrapped_lines import unwrap_lines

NOW: Final = datetime(2026, 11, 20, tzinfo=UTC)
REFUSED: Final = (
    "0/6 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) "
    "didn't match Pod's node affinity/selector, 3 Insufficient nvidia.com/gpu. preemption: 0/6 nodes are available: 3 "
    "No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
)
SKIPPED: Final = (
    "pod didn't trigger scale-up: 2 node(s) had untolerated taint {dedicated: batch}, 1 max node group size reached, 4 "
    "Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector"
)
DESCRIBED: Final = f"""\
Name:             train-7
Namespace:        vision
Priority:         0
Node:             <none>
Labels:           app=train
Status:           Pending
Containers:
  main:
    Image:      example.org/train:1
    Limits:
      nvidia.com/gpu:  2
Conditions:
  Type           Status
  PodScheduled   False
Events:
  Type     Reason             Age                 From                Message
  ----     ------             ----                ----                -------
  Warning  FailedScheduling   12m                 default-scheduler   {REFUSED}
  Normal   NotTriggerScaleUp  2m (x19 over 11m)   cluster-autoscaler  {SKIPPED}
  Warning  FailedScheduling   90s (x3 over 11m)   default-scheduler   {REFUSED}

Some of the nodes have GPUs that nobody uses.
What is wrong?"""


def break_at(text: str, width: int) -> str:
    """Break lines at the last column, as a terminal does."""
    return "\n".join(
        line[start : start + width] for line in text.split("\n") for start in range(0, max(len(line), 1), width)
    )


def break_before_words(text: str, width: int) -> str:
    """Break lines before the word that would pass the width, as a mail program does."""
    return "\n".join(
        part
        for line in text.split("\n")
        for part in textwrap.wrap(line, width, drop_whitespace=True, break_long_words=False, break_on_hyphens=False)
        or [""]
    )


def list_notes(text: str) -> list[str]:
    return [entry["message"] for entry in parse_pasted(text, NOW) if entry["kind"] == "Event"]


@pytest.mark.parametrize("width", [*range(76, 84), 100, 120, 132])
def test_what_a_terminal_broke_is_joined_again(width: int) -> None:
    assert "\n".join(unwrap_lines(break_at(DESCRIBED, width).split("\n"))) == DESCRIBED


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("break_lines", [break_at, break_before_words])
def test_events_have_the_words_that_they_had_before(break_lines: object, width: int) -> None:
    assert callable(break_lines)
    assert list_notes(break_lines(DESCRIBED, width)) == [REFUSED, SKIPPED, REFUSED]


@pytest.mark.parametrize("width", [80, 132])
def test_a_description_that_a_terminal_broke_is_read_as_the_whole_one(width: int) -> None:
    broken, unbroken = (read_case_text(text).objects.tables for text in (break_at(DESCRIBED, width), DESCRIBED))
    assert broken["Pod"].keys() == {("vision", "train-7")} == unbroken["Pod"].keys()
    assert [event["message"] for event in broken["Event"].values()] == [
        event["message"] for event in unbroken["Event"].values()
    ]


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED,
        # A long line twice, and prose behind it.
        f"Warning  FailedScheduling  2m  default-scheduler  {SKIPPED}\n" * 2 + "why is that so?",
        # Lines of one length that each say something.
        "\n".join(f"Warning  Failed  2m  kubelet  node-{number}: {'x' * 60}" for number in range(4)),
        "\n".join(["spec:", *(f"  - name: container-{number}-{'y' * 70}" for number in range(4)), "status: {}"]),
    ],
)
def test_a_text_without_broken_lines_is_left_as_it_is(text: str) -> None:
    assert unwrap_lines(text.split("\n")) == text.split("\n")
