"""Requests to Amazon's OpenSearch carry a signature (AWS Signature Version 4), which this server checks as Amazon does.

The check is made of Amazon's description alone, and is itself checked by Amazon's published example.
"""

import hashlib
import hmac
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, quote

import pytest
from aiohttp import web
from opensearchpy import AsyncOpenSearch

from runtime.errors import SettingError
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import OpenSearchConnection

# Amazon's, in the test suite of its signatures.
KEY_ID: Final = "AKIDEXAMPLE"
SECRET: Final = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105 - an example

Headers = Iterable[tuple[str, str]]


def compute_signature(method: str, raw_path: str, query: str, headers: Headers, payload_hash: str, scope: str) -> str:
    """Compute the signature as docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html says;
    ``headers`` are those that are signed, of which one is X-Amz-Date.
    """
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(query, keep_blank_values=True))
    signed = sorted((name.lower(), " ".join(value.split())) for name, value in headers)
    request = "\n".join(
        [
            method,
            quote(raw_path, safe="/-_.~"),
            "&".join(f"{k}={v}" for k, v in pairs),
            *(f"{name}:{value}" for name, value in signed),
            "",
            ";".join(name for name, _ in signed),
            payload_hash,
        ]
    )
    text = "\n".join(
        ["AWS4-HMAC-SHA256", dict(signed)["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def test_amazons_own_example_has_the_signature_that_amazon_publishes() -> None:
    headers = [("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z")]
    scope = "20150830/us-east-1/service/aws4_request"
    signature = compute_signature("GET", "/", "", headers, hashlib.sha256(b"").hexdigest(), scope)
    assert signature == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"


class Amazon:
    """A server that answers who signed rightly, and 403 everybody else."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.scopes: set[str] = set()
        self.tokens: set[str] = set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        algorithm, _, fields = request.headers.get("Authorization", "").partition(" ")
        if algorithm != "AWS4-HMAC-SHA256":
            return self._refuse(request, "no signature")
        authorization = dict(part.strip().split("=", 1) for part in fields.split(","))
        key_id, scope = authorization["Credential"].split("/", 1)
        headers = [(name, request.headers[name]) for name in authorization["SignedHeaders"].split(";")]
        payload_hash = hashlib.sha256(await request.read()).hexdigest()
        path, _, query = request.raw_path.partition("?")
        expected = compute_signature(request.method, path, query, headers, payload_hash, scope)
        if key_id != KEY_ID or authorization["Signature"] != expected:
            return self._refuse(request, "another signature")
        # Of a body that is not signed, anybody on the way could make another one.
        if request.headers["X-Amz-Content-SHA256"] != payload_hash:
            return self._refuse(request, "another body")
        self.scopes.add(scope.split("/", 1)[1])
        self.tokens.add(dict(headers).get("x-amz-security-token", ""))
        return web.json_response({"hits": {"hits": []}, "items": [], "errors": False})

    def _refuse(self, request: web.Request, why: str) -> web.Response:
        self.refused.append(f"{request.method} {request.raw_path}: {why}")
        return web.json_response({"error": why}, status=403)


@asynccontextmanager
async def serving() -> AsyncIterator[Amazon]:
    amazon = Amazon()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", amazon.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    amazon.url = "http://{}:{}".format(*runner.addresses[0])
    try:
        yield amazon
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-role")
    # Nothing of the machine's own.
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def a_client(url: str, service: str = "es") -> AsyncOpenSearch:
    return create_client(
        OpenSearchConnection.model_validate(
            {"opensearch_url": url, "opensearch_aws_region": "eu-central-1", "opensearch_aws_service": service}
        )
    )


async def send_every_kind(client: AsyncOpenSearch) -> None:
    """Send the requests of pipeline and API: with and without a body, parameters, and what a URL has to quote."""
    await client.search(
        body={"query": {"match": {"text": "nödigt  ~ Grüße"}}},
        index="schedulerlog-attempts-2026-11-*,schedulerlog-attempts-2026-10-*",
        params={"ignore_unavailable": "true", "filter_path": "hits.hits._source,-took", "preference": "a+b"},
    )
    await client.bulk(body=b'{"index":{"_index":"i","_id":"a/b c"}}\n{"x":1}\n')
    await client.get(index="schedulerlog-attempts", id="a/b c%:é")
    await client.indices.put_index_template(name="schedulerlog-attempts", body={"index_patterns": ["x"]})
    await client.indices.delete(index="schedulerlog-attempts-2026-11-01")
    await client.cluster.health()


@pytest.mark.parametrize("service", ["es", "aoss"])
async def test_amazon_takes_every_kind_of_request(service: str) -> None:
    async with serving() as amazon:
        client = a_client(amazon.url, service)
        try:
            await send_every_kind(client)
        finally:
            await client.close()
    assert amazon.refused == []
    assert amazon.scopes == {f"eu-central-1/{service}/aws4_request"}
    assert amazon.tokens == {"of-a-role"}


def test_without_credentials_the_message_names_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(SettingError, match="give the pod a role, or set AWS_ACCESS_KEY_ID"):
        a_client("http://127.0.0.1:9200")
