"""The story of ``make demo`` on real servers: README shows what it prints."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dev.demo import story
from dev.demo.__main__ import build_next_steps
from dev.demo.scenarios import EXAMPLES
from dev.demo.stack import Stack
from tests.support.reused_backends import shared_stack

COMMAND: Final = "$ make demo\n"
_HOLD: Final = re.compile(r",\s+for\s+\d+\s+s\s+when\s+the\s+bind\s+was\s+tried|,\s+since\s+[\d:]+\s+UTC")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    with shared_stack(folder, EXAMPLES / "cluster.yaml", api_reads_objects=True) as running:
        yield running


def test_the_readme_shows_what_the_demo_prints(running: Stack) -> None:
    lines: list[str] = []
    story.draw(running, lines.append)
    for act, answers in story.play(running):
        lines += story.format_act(act, answers)
    recording = Path("README.md").read_text("utf-8").partition(COMMAND)[2].partition("```")[0]
    # How long the lock was held, which is left out below a second, and the ports differ from run to run.
    ours, recorded = (_list_words(text) for text in ("\n".join(lines), recording.partition("\nOpen ")[0]))
    assert len(recorded) > 100
    assert ours == recorded
    assert len(recording.splitlines()) <= 45
    assert any(line.startswith("Open  http://127.0.0.1:") for line in build_next_steps(running))
    waiting: list[str] = []
    placed = story.wait_for_end(running, waiting.append, 0.0)
    assert placed.diagnosis["state"] == "placed"
    assert "llm/pretrain has ended." in waiting[-3]
    assert waiting[-1] == "  placed   The pod is on node node10."
    many = " ".join(" ".join(story.format_many(running)).split())
    assert "answer 1 of 3 pods wait: " in many
    assert "plan A drain of node2 moves 3 pods, and a node takes each of them now." in many


def _list_words(text: str) -> list[str]:
    """List the words without the hold, whose length moves the ends of lines."""
    return _HOLD.sub("", text).split()
