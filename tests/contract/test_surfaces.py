"""Page, terminal and assistant say the same of the same pod: what the API answers."""

import asyncio
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, Final

import httpx
import pytest
from mcp import Client
from typer.testing import CliRunner

from cli.assistant.callers import use_one_user
from cli.assistant.server import create_server
from cli.client.url import UrlTransport
from cli.command import app
from page.texts import get_text
from tests.support.harness.example_api import build_caller
from tests.support.harness.golden_api import golden_api

NAMESPACE: Final = "default"
PODS: Final = {"gpu-pod-default": "2-gpu-pod-default", "gpu-pod": "1-gpu-pod"}
"""One that every node refused, one that has a node, and the files of their examples."""


class _Words(HTMLParser):
    """The text of a page, and that of the line of each group."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.groups: list[list[str]] = []
        self._is_in_group = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details" and dict(attrs).get("class") == "group":
            self.groups.append([])
            self._is_in_group = True

    def handle_endtag(self, tag: str) -> None:
        self._is_in_group &= tag != "summary"

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._is_in_group:
            self.groups[-1].append(data)


class Surfaces:
    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = url, name
        self.pod_url = f"{url}/api/v1/namespaces/{NAMESPACE}/pods/{name}"

    def get_answer(self, part: str) -> Any:
        return httpx.get(f"{self.pod_url}/{part}", timeout=30).json()

    def read_page(self, part: str = "") -> _Words:
        words = _Words()
        words.feed(httpx.get(f"{self.url}/ui/pods/{NAMESPACE}/{self.name}{part}", timeout=30).text)
        return words

    def read_terminal(self) -> str:
        # In a pipe, where no line is folded.
        words = ["why", f"{NAMESPACE}/{self.name}", "-o", "wide", "--api-url", self.url]
        return CliRunner().invoke(app, words, env={"COLUMNS": "10000"}).stdout

    def ask_assistant(self, tool: str) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            async with Client(create_server(use_one_user(UrlTransport(self.url, "", "")))) as client:
                done = await client.call_tool(tool, {"pod": self.name, "namespace": NAMESPACE})
                answer: dict[str, Any] = done.structured_content or {}
                return answer

        return asyncio.run(ask())


def simplify(value: str) -> str:
    """Remove folds, and the marks of code, which the page shows in another way."""
    return " ".join(value.replace("`", "").split())


@pytest.fixture(scope="module", params=PODS)
def surfaces(request: pytest.FixtureRequest) -> Iterator[Surfaces]:
    with golden_api(build_caller(PODS[request.param])) as url:
        yield Surfaces(url, request.param)


def test_the_diagnosis_is_the_same_everywhere(surfaces: Surfaces) -> None:
    diagnosis = surfaces.get_answer("diagnosis")
    page, terminal = simplify("".join(surfaces.read_page().words)), simplify(surfaces.read_terminal())
    assistant = surfaces.ask_assistant("why_pod")
    texts = [
        diagnosis["sentence"]["en"],
        *(other_obstacle["sentence"]["en"] for other_obstacle in diagnosis["other_obstacles"]),
    ]
    if obstacle := diagnosis["obstacle"]:
        texts += [obstacle["code"], obstacle["likely_cause"]["en"], obstacle["remedy"]["en"]]
        records = [item["record"] for item in obstacle["evidence"]]
        assert records
        assert set(records) <= set(assistant["evidence"])
        texts += records
    assert texts
    texts_by_surface = {
        "page": page,
        "terminal": terminal,
        "assistant": simplify(assistant["text"]) + " ".join(assistant["evidence"]),
    }
    missing = {
        (name, phrase) for name, words in texts_by_surface.items() for phrase in texts if simplify(phrase) not in words
    }
    assert missing == set()


def test_what_would_have_to_change_is_the_same_everywhere(surfaces: Surfaces) -> None:
    suggestions = surfaces.get_answer("suggestions")
    texts_by_surface = {
        "page": simplify("".join(surfaces.read_page("/changes").words)),
        "terminal": simplify(surfaces.read_terminal()),
        "assistant": simplify(surfaces.ask_assistant("suggest")["text"]),
    }
    places = {
        name: [words.find(simplify(item["sentence"]["en"])) for item in suggestions["items"]]
        for name, words in texts_by_surface.items()
    }
    # All of them are there, in the same order.
    assert all(-1 not in positions and positions == sorted(positions) for positions in places.values()), places
    assert bool(suggestions["items"]) is (suggestions["state"] == "refused")


def test_the_groups_of_nodes_are_the_same_everywhere(surfaces: Surfaces) -> None:
    """Also those that Headlamp shows, which asks for ``groups``."""
    groups = surfaces.get_answer("groups")["groups"]
    assert len(groups) > 4
    lines = surfaces.read_page().groups
    # The time line follows, behind an empty line.
    rows = surfaces.read_terminal().partition("NODES  VERDICT")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(lines) == len(groups) == len(rows)
    for group, line, row in zip(groups, lines, rows, strict=True):
        page, names = simplify("".join(line)), group["nodes"]
        verdict = get_text("en", f"verdict.{group['verdict']}")
        reasons = {f"{count['max_count']}/{group['devices']} {count['code']}" for count in group["counts"]}
        assert page.startswith(f"{len(names)} {verdict}")
        assert row.split()[0] == str(len(names))
        assert verdict in row
        assert all(reason in page and reason in row for reason in reasons)
        assert re.findall(r"[\w.-]+", row.rpartition("  ")[2]) == names
        assert ", ".join(names[:3]) in page
