"""The server by the SDK's own client: over stdio as a process, over HTTP with a token of its caller."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.certificates import Authority
from tests.support.harness.golden_api import POD, golden_api
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.steady_load import steady_load
from tests.support.waiting import until

NAMESPACE, _, NAME = POD.partition("/")
ATTEMPT = "6f97a54de6fbb9e27ee3a1dc8d608d38"
SENTENCE = "Node node5 was chosen, and another pod held its lock: llm/qwen-0, for 2 s when the bind was tried."
LOG = Path("tests/conformance/cases/logs/042.log")
CALLS: dict[str, dict[str, Any]] = {
    "why_pod": {"pod": NAME, "namespace": NAMESPACE},
    "suggest": {"pod": NAME, "namespace": NAMESPACE},
    "why_workload": {"kind": "job", "name": "train", "namespace": NAMESPACE},
    "suggest_for_many": {},
    "simulate": {"pod": Path("examples/pods/1-gpu-pod.yaml").read_text()},
    "plan_drain": {"node": "node3"},
    "plan_moves": {"pod": Path("examples/pods/1-gpu-pod.yaml").read_text()},
    "plan_purchase": {},
    "pending": {},
    "trends": {"by": "reason"},
    "report": {},
    "node_at": {"node": "node3", "at": "2026-04-22T14:00:00Z"},
    "search": {"namespace": "llm"},
    "explain_log": {"text": LOG.read_text(), "pod": "train-2002"},
}
EVIDENCE = {
    "why_pod": ATTEMPT,
    "suggest": ATTEMPT,
    "pending": ATTEMPT,
    "node_at": ATTEMPT,
    "search": ATTEMPT,
    "explain_log": "b57f04dc5ad07005b00747e10a9174f6",
}


@pytest.fixture(scope="module")
def api_url() -> Iterator[str]:
    with golden_api() as url:
        yield url


def open_stdio(api_url: str) -> Client:
    command = ["-m", "schedulerlog", "mcp", "--api-url", api_url]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))))


@contextmanager
def serving_http(api_url: str, *flags: str) -> Iterator[str]:
    """The address of the server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "schedulerlog", "mcp", "--http", str(port), "--api-url", api_url, *flags]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: answers(port))
        yield f"{'https' if flags else 'http'}://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    with socket.socket() as free_socket:
        return free_socket.connect_ex(("127.0.0.1", port)) == 0


async def test_every_tool_answers_over_stdio_with_its_evidence(api_url: str) -> None:
    async with open_stdio(api_url) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(CALLS)
        for tool in tools:
            assert tool.annotations
            assert tool.annotations.read_only_hint
            assert tool.description
        for name, arguments in CALLS.items():
            done = await client.call_tool(name, arguments)
            if name in ("why_workload", "plan_drain", "plan_moves", "plan_purchase"):
                # Workloads and plans are answered from objects, which an API by its address does not have.
                assert done.is_error
                continue
            assert not done.is_error, done
            assert done.structured_content
            assert EVIDENCE.get(name, "") in done.structured_content["evidence"] or name not in EVIDENCE, name
            text = done.content[0].model_dump()["text"]
            assert text.startswith(done.structured_content["text"])
            assert len(text) < 4_000
        why = await client.call_tool("why_pod", CALLS["why_pod"])
        assert why.structured_content
        assert why.structured_content["text"].startswith(SENTENCE)


async def test_what_is_not_known_is_an_error_that_says_what_to_do(api_url: str) -> None:
    async with open_stdio(api_url) as client:
        done = await client.call_tool("why_pod", {"pod": "NOT A NAME"})
        assert done.is_error
        assert done.content[0].model_dump()["text"].startswith("WrongRequest: ")


async def test_over_http_the_callers_token_is_passed_on() -> None:
    """A proxy in front of the API sees which token came with each question."""
    seen: list[str] = []
    with recording(seen) as url, serving_http(url) as address:
        for token in ("ann", "ben"):
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                done = await client.call_tool("why_pod", CALLS["why_pod"])
                assert done.structured_content
                assert ATTEMPT in done.structured_content["evidence"]
        async with Client(address) as client:
            await client.call_tool("why_pod", CALLS["why_pod"])
        # M1, M2: 4 MB of empty lists took 90 MB, and a stream on which nothing is sent stayed open.
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        lists = b'{"jsonrpc": "2.0", "id": 1, "params": [' + b"[]," * 1_300_000 + b"[]]}"
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            assert (await http.post(address, content=lists)).status_code == 413
            assert (await http.get(address)).status_code == 405
    # A question may take several requests.
    assert [token for token, _ in groupby(seen)] == ["Bearer ann", "Bearer ben", ""]


async def test_over_http_a_caller_reads_what_its_token_allows() -> None:
    """Alice may read the pods of llm and nothing else, and who has no valid token nothing at all."""
    guarded = Guarded()
    guarded.begin()
    guarded.reviews.build_header("alice", READS_LLM)
    allowed = {"pod": "deepseek-a", "namespace": "llm"}
    with golden_api(guarded) as url, serving_http(url) as address:
        for token, arguments, is_answered in (
            ("token-of-alice", allowed, True),
            ("token-of-alice", allowed | {"namespace": "other"}, False),
            ("token-of-nobody", allowed, False),
            ("", allowed, False),
        ):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                done = await client.call_tool("why_pod", arguments)
                assert done.is_error is not is_answered, (token, done)
                assert is_answered or done.content[0].model_dump()["text"].startswith("NotAllowed: ")
                # N8: whom the API does not know makes this server read no log.
                explained = await client.call_tool("explain_log", CALLS["explain_log"])
                assert explained.is_error is not token.endswith("alice"), explained
                # Of all namespaces: alice may not.
                assert (await client.call_tool("pending", {})).is_error


def test_the_certificate_is_replaced_while_callers_ask(api_url: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("mcp")
    trusted = ssl.create_default_context(cafile=str(authority.ca_file))
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}

    with serving_http(api_url, "--cert-file", str(pair.certificate), "--key-file", str(pair.key)) as address:
        url = httpx2.URL(address)

        def list_tools(_number: int) -> None:
            # Over a connection of its own.
            answer = httpx2.post(address, json=request, headers=headers, verify=trusted, timeout=60)
            assert {tool["name"] for tool in answer.json()["result"]["tools"]} == set(CALLS)

        def read_certificate() -> str:
            return ssl.get_server_certificate((url.host, url.port or 0))

        before = read_certificate()
        assert before == pair.certificate.read_text()
        with steady_load(list_tools, per_second=20) as load:
            load.wait_for_steps(10)
            authority.issue("mcp")
            until(read_certificate, lambda certificate: certificate != before)
            load.wait_for_steps(10)
        assert read_certificate() == pair.certificate.read_text()


def test_a_pair_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("mcp")
    flags = ["--http", "8765", "--api-url", "https://a", "--cert-file", str(pair.key), "--key-file", str(pair.key)]
    command = [sys.executable, "-m", "schedulerlog", "mcp", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, f"--cert-file: {pair.key} holds no certificate in PEM form\n")


@contextmanager
def recording(seen: list[str]) -> Iterator[str]:
    """The golden API, which notes the ``Authorization`` of each request."""
    from tests.support.harness.api_app import Caller
    from tests.support.harness.golden_index import answer_search, read_attempt

    caller = Caller(answer_search)
    caller.remember(read_attempt())
    inner: Any = caller.app

    async def note_headers(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]).get(b"authorization", b"").decode())
        await inner(scope, receive, send)

    caller.app = note_headers  # type: ignore[assignment]
    with golden_api(caller) as url:
        yield url


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--http", "8765"], "give --api-url too"),
        (["--http", "0.0.0.0:8765", "--api-url", "https://a"], "not taken in plain text"),
        (["--http", "8765", "--api-url", "https://a", "--api-token-file", "x"], "a token of its own"),
        (["--http", "8765", "--api-url", "https://a", "--cert-file", "x"], "go together"),
    ],
)
def test_a_server_that_would_lend_its_rights_does_not_start(words: list[str], text: str) -> None:
    command = [sys.executable, "-m", "schedulerlog", "mcp", *words]
    environment = {name: value for name, value in os.environ.items() if name != "SCHEDULERLOG_API_URL"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=30)
    assert (done.returncode, text in done.stderr) == (2, True), done.stderr
