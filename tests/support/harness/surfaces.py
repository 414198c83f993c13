"""The answer about one pod on every surface, from the same objects and log: what each of them shows of it."""

import asyncio
import html
import json
import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from starlette.testclient import TestClient
from typer.testing import CliRunner

import api.handlers.diagnosis
import api.handlers.suggestions
import cli.direct.pod_case
from cli.assistant import log_process
from cli.assistant.tools import ApiTools
from cli.client.kubectl import parse_kubectl_problem
from cli.client.problems import Problem
from cli.command import app
from cli.direct.reader import ObjectReader
from cli.direct.transport import DirectTransport
from cli.terminal.pod_answer import fetch_pod_answer
from cli.terminal.why import _answer
from ingest.cases.read_case import SAVED_CASE
from runtime.kubernetes.errors import KubeApiError
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.fakes.cluster_objects import ClusterObjects
from tests.support.harness.api_app import Caller, answer_nothing

NOW: Final = datetime.fromisoformat("2026-11-24T08:30:00Z")
CLOCKS: Final = (api.handlers.diagnosis, api.handlers.suggestions, cli.direct.pod_case)
"""Modules that ask for the time of an answer."""


CLOCK: Final = SimpleNamespace(now=lambda _: NOW)
"""Clock in place of ``datetime`` in these modules: it is always ``NOW``."""


class Surface(NamedTuple):
    """Parts of an answer that every surface shows."""

    headline: str
    background: str
    code: str
    numbers: dict[str, int]
    suggestions: list[str]
    nodes: dict[str, str]
    """Reason of each refused node with the numbers of its devices, X/Y; empty for a node that takes the pod."""
    findings: list[str]


def list_parts(document: Json) -> Surface:
    """List what a document with diagnosis, suggestions and findings shows."""
    obstacle, background = document.get("obstacle"), document.get("background")
    suggestions = (document.get("suggestions") or {}).get("items", [])
    return Surface(
        _get_text(document["headline"]),
        _get_text(background) if background else "",
        obstacle["code"] if obstacle else "",
        obstacle.get("numbers", {}) if obstacle else {},
        [_get_text(item["sentence"]) for item in suggestions],
        {node["name"]: _list_reasons(node) for node in document.get("nodes") or ()},
        sorted(finding["finding"] for finding in document.get("findings") or ()),
    )


def _get_text(text: Any) -> str:
    """Get the English text; an assistant gets no other."""
    return str(text["en"] if isinstance(text, dict) else text)


def _list_reasons(node: Json) -> str:
    return "; ".join(filter(None, (container.get("reason", "") for container in node.get("containers", ()))))


class LiveCluster:
    """An API server of these objects, as kubectl reads it; ``log``: that of the pod `hami-scheduler` in it."""

    def __init__(self, objects: list[Json], log: bytes = b"") -> None:
        self._objects, self._log = ClusterObjects(objects), log

    def fetch(self, address: str) -> bytes | Problem:
        path = urlsplit(address).path
        if path.endswith("/log"):
            return self._log
        try:
            return json.dumps(self._read(path)).encode()
        except KubeApiError as error:
            return parse_kubectl_problem(f"Error from server (NotFound): {error}")

    def _read(self, path: str) -> Json:
        if path == "/apis" or path.rsplit("/", 2)[-2] in ("pods", "nodes"):
            return asyncio.run(self._objects.get(path))
        page = asyncio.run(self._objects.read_page(path))
        return page if page["items"] else asyncio.run(self._objects.get(path))


def show_live(objects: list[Json], name: str, capsys: Any, log: bytes = b"") -> dict[str, Surface]:
    """Show the answer of a live cluster: as JSON, at a terminal, and to an assistant."""
    transport = DirectTransport(ObjectReader(LiveCluster(objects, log).fetch), lambda: "lab", lambda _: None)
    document = fetch_pod_answer(transport, "lab", name)
    assert isinstance(document, dict), document
    answer = list_parts(document)
    capsys.readouterr()
    _answer(cast("Any", SimpleNamespace(output="text")), transport, "lab", name, "")
    check_text(capsys.readouterr().out, answer)
    result = ApiTools(lambda _: transport).why_pod(cast("Any", None), name, "lab")
    return {"why": answer, "assistant": _read_result(result, answer)}


def show_files(objects: list[Json], pod: str, folder: Path, log: bytes = b"") -> dict[str, Surface]:
    """Show the answer from files: as JSON, at a terminal, as a page, and of a text to an assistant."""
    files = []
    if objects:
        files.append(folder / "objects.json")
        files[-1].write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*objects, _build_date()]}))
    if log:
        files.append(folder / "hami.log")
        files[-1].write_bytes(log)
    paths = [*map(str, files)]
    answer = list_parts(json.loads(run_command("explain", *paths, pod, "-o", "json")))
    check_text(run_command("explain", *paths, pod), answer)
    page = folder / "why.html"
    run_command("explain", *paths, pod, "--html", str(page))
    check_page(page.read_text(), answer)
    if len(files) > 1:
        return {"explain": answer}
    result = log_process.explain(files[0].read_text(), pod)
    return {"explain": answer, "assistant of a text": _read_result(result, answer)}


def simulate_again(objects: list[Json], pod: str, folder: Path) -> Surface:
    """Simulate the pod of these objects as if it were made again, at a terminal and as JSON."""
    file, name = folder / "pod.json", pod.partition("/")[2]
    file.write_text(json.dumps(next(item for item in objects if item["metadata"]["name"] == name)))
    words = "simulate", "-f", str(file), "--cluster", str(folder / "objects.json")
    simulation = json.loads(run_command(*words, "-o", "json"))
    answer = list_parts({**simulation["diagnosis"], "suggestions": simulation["suggestions"]})
    check_text(run_command(*words), answer)
    return answer


def show_served(objects: list[Json], name: str, attempt: AttemptSummarized | None) -> dict[str, Surface]:
    """Show the answer of the API, as JSON and as its page, with the attempt that it remembers."""
    caller = Caller(answer_nothing, objects=ClusterObjects(objects) if objects else None)
    if attempt:
        caller.remember(attempt)
    client = TestClient(caller.app, "http://localhost")
    document = client.get(f"/api/v1/namespaces/lab/pods/{name}/diagnosis").json()
    suggestions = client.get(f"/api/v1/namespaces/lab/pods/{name}/suggestions")
    answer = list_parts({**document, "suggestions": suggestions.json() if suggestions.status_code == 200 else None})
    page = client.get(f"/ui/pods/lab/{name}")
    assert page.status_code == 200, page.text
    check_page(page.text, answer._replace(suggestions=[]))
    return {"API": answer}


def _build_date() -> Json:
    """Build the object that says when the objects were read."""
    kind, _, group = SAVED_CASE.partition(".")
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "case", "creationTimestamp": format_rfc3339(NOW)},
        "unread": [],
    }


def run_command(*words: str) -> str:
    """Run ``schedulerlog`` and return what it prints."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "1000"})
    assert done.exit_code in (0, 1), done.output
    return done.stdout


def check_text(text: str, answer: Surface) -> None:
    """Check that a terminal shows the headline first, then the background, and all other parts."""
    lines = text.splitlines()
    assert lines[0] == answer.headline
    if answer.background:
        assert lines[1] == answer.background
    _check_parts(text, answer)


def check_page(page: str, answer: Surface) -> None:
    """Check that a page shows the headline as its lead, and all other parts."""
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\u2060", "").replace("\xa0", " ").split())
    lead = re.search(r'class="lead">(.*?)</p>', page)
    assert lead, page
    plain = html.unescape(re.sub(r"<[^>]*>", "", lead[1])).replace("\u2060", "").replace("\xa0", " ")
    assert plain == answer.headline.replace("`", "")
    assert answer.background.replace("`", "") in text
    _check_parts(text, answer, mark="")


def _check_parts(text: str, answer: Surface, mark: str = "`") -> None:
    assert answer.code in text
    for sentence in answer.suggestions:
        assert sentence.replace("`", mark) in text
    for finding in answer.findings:
        assert finding in text


def _read_result(result: Any, answer: Surface) -> Surface:
    """Read what an assistant gets, and check that its text begins with the headline."""
    assert not result.is_error, result.content
    content = result.structured_content
    text = content["text"].replace("the cluster wrote: ", "").replace('"', "")
    assert text.startswith(answer.headline.replace('"', "")), (text, answer.headline)
    return list_parts(content["answer"])
