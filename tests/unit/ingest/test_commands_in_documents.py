"""Every command line of the documents that reads a scheduler is one that ``schedulerlog ingest`` understands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from ingest.__main__ import app

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
READERS = ("hami-log", "kai-log", "kube-events", "sniffer", "raw-logs")


def iterate_commands(page: Path) -> Iterator[list[str]]:
    """Iterate over the words after ``schedulerlog ingest`` of each indented or fenced line, continued lines joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?: {4}|\$ )?[^`\n]*(?:python -m|schedulerlog) ingest (.*)$", text, re.MULTILINE):
        if "`" not in line:
            yield shlex.split(re.split(r"[|>]", line)[0], comments=True)


ALL = [words for page in PAGES for words in iterate_commands(page)]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_command_of_the_documents_is_understood(words: list[str]) -> None:
    group = get_command(app)
    context = group.make_context("ingest", [words[0], "--help"], resilient_parsing=True)
    _, command, arguments = group.resolve_command(context, words)  # type: ignore[attr-defined]
    command.make_context(words[0], arguments, parent=context)


def test_the_pages_about_the_sources_show_how_to_call_each() -> None:
    pages = sorted((ROOT / "docs").glob("sources*.md"))
    assert {words[0] for page in pages for words in iterate_commands(page)} == set(READERS)
