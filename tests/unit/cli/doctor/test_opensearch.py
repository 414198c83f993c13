"""The finding about an OpenSearch that can't be asked: the cause and the remedy, by a real connection."""

import asyncio
import ssl
from pathlib import Path

import pytest

from cli.doctor.findings import Fault
from cli.doctor.opensearch import check
from runtime.settings.opensearch_connection import OpenSearchConnection
from tests.support.certificates import Authority

_HEAD = "HTTP/1.1 {} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{}"


async def find_fault(
    tmp_path: Path, *, status: int = 200, body: str = "{}", ca: str = "own", scheme: str = "https"
) -> Fault:
    """Find the only fault of a server that gives one answer to everything."""
    authority, other = Authority(tmp_path / "own"), Authority(tmp_path / "other", "somebody")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = authority.issue("index")
    context.load_cert_chain(pair.certificate, pair.key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD.format(status, len(body), body).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trusted = {"own": authority, "other": other}[ca].ca_file
        files = {"opensearch_ca_file": trusted} if scheme == "https" else {}
        ((fault,), _) = await check(OpenSearchConnection(opensearch_url=f"{scheme}://127.0.0.1:{port}", **files))
    return fault


async def test_an_authority_that_did_not_sign_is_named_as_the_cause(tmp_path: Path) -> None:
    fault = await find_fault(tmp_path, ca="other")
    assert fault.problem.startswith("its certificate is not trusted (")
    assert fault.remedy == "Name the authority that signed its certificate in SCHEDULERLOG_OPENSEARCH_CA_FILE."


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "Correct SCHEDULERLOG_OPENSEARCH_USERNAME and its password, or the client certificate."),
        (403, "Its user needs the role schedulerlog-provisioner."),
    ],
)
async def test_a_refusal_is_no_silence(tmp_path: Path, status: int, remedy: str) -> None:
    fault = await find_fault(tmp_path, status=status, body='{"error": "no permissions"}')
    assert fault.problem.startswith("refuses us (")
    assert str(status) in fault.problem
    assert fault.remedy == remedy


async def test_a_plain_request_to_a_tls_port_names_https(tmp_path: Path) -> None:
    fault = await find_fault(tmp_path, scheme="http")
    assert fault.problem.startswith("does not answer (")
    assert "https:// with TLS" in fault.remedy


async def test_a_port_that_refuses_is_reported_with_the_cause() -> None:
    ((fault,), _) = await check(OpenSearchConnection(opensearch_url="http://127.0.0.1:1"))
    assert "Connect call failed" in fault.problem
