"""Client certificates, by real handshakes with the server of the API."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.authority.certificates import caller_named
from api.http.json_protocol import JsonProtocol
from api.server import ServerWithCertificate
from process.server_tls import CertificatePair, Certificates
from tests.support.certificates import Authority
from tests.support.fakes.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Grant
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import OTHER, READS_LLM, Guarded

LATER = {"notAfter": "Jan  1 00:00:00 2027 GMT"}
ENDS_AT = 1_798_761_600.0


def subject(*fields: tuple[str, str]) -> dict[str, object]:
    return {"subject": tuple((field,) for field in fields), **LATER}


def test_cn_is_the_user_and_each_o_a_group() -> None:
    found = caller_named(
        subject(("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "alice")), ENDS_AT - 1
    )
    assert found
    assert (found.name, found.groups) == ("alice", ("dev", "ops", "system:authenticated"))


@pytest.mark.parametrize(
    ("fields", "now"),
    [
        ((("organizationName", "dev"),), 0),
        ((("commonName", ""),), 0),
        ((("commonName", "alice"), ("commonName", "bob")), 0),
        ((("commonName", "alice"),), ENDS_AT),
    ],
)
def test_a_certificate_without_one_user_or_after_its_end_names_no_caller(
    fields: tuple[tuple[str, str], ...], now: float
) -> None:
    assert caller_named(subject(*fields), now) is None


@contextlib.asynccontextmanager
async def served(api: Guarded, pair: CertificatePair) -> AsyncIterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = ServerWithCertificate(
        api.app, Certificates(pair), http=JsonProtocol, access_log=False, log_level="critical", lifespan="off"
    )
    running = asyncio.create_task(server.serve([listening]))
    try:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


async def status(url: str, authority: Authority, shown: CertificatePair | None, **headers: str) -> int:
    """0 where the handshake is refused."""
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if shown:
        context.load_cert_chain(shown.certificate, shown.key)
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        try:
            return (await client.get(url, headers=headers)).status_code
        except httpx.TransportError:
            return 0


async def test_a_certificate_of_the_authority_is_its_user(api: Guarded, tmp_path: Path) -> None:
    """Rows 66 to 68."""
    ours, foreign = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "foreign", "foreign")
    server = ours.issue("api")
    api.reviews.grants.add(READS_LLM)
    bob = api.reviews.caller("bob", Grant("bob", "get", "pods", "other"))
    alice, stale, stranger = ours.issue("alice"), ours.issue("old", days=-1), foreign.issue("alice")
    async with served(api, CertificatePair(server.certificate, server.key, client_ca=ours.ca_file)) as url:
        assert await status(url + POD, ours, alice) == 200
        (review,) = api.reviews.asked(ACCESS_REVIEW)
        assert (review["user"], review["groups"]) == ("alice", ["system:authenticated"])
        assert [await status(url + POD, ours, each) for each in (stranger, stale)] == [0, 0]
        assert await status(url + POD, ours, None) == 401
        # With the token of another caller: the certificate counts, and the token is not reviewed.
        assert await status(url + OTHER, ours, alice, **bob) == 403
        assert api.reviews.asked(TOKEN_REVIEW) == []
        assert await status(url + OTHER, ours, None, **bob) == 404
