"""Identity of this process at a server, and of the server at this process, with each request."""

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from opensearchpy.exceptions import ConnectionError as NotConnectedError

from runtime import refused_credentials
from runtime.opensearch.client import create_client
from runtime.refused_credentials import describe_refusal
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import FileSecret
from tests.support.certificates import Authority


class Server:
    """Server that notes the header and the certificate of each request, which has a connection of its own."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.context = context
        self.headers: list[str] = []
        self.users: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        assert request.transport
        self.headers.append(request.headers.get("authorization", ""))
        if self.context:
            subject = dict(pair[0] for pair in request.transport.get_extra_info("peercert")["subject"])
            self.users.append(subject["commonName"])
        return web.json_response({}, headers={"connection": "close"})


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server, app = Server(context), web.Application()
    app.router.add_get("/", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server.url = f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


async def test_each_request_has_the_password_of_its_time(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("first")
    async with serving() as server:
        connection = OpenSearchConnection.model_validate(
            {
                "opensearch_url": server.url,
                "opensearch_username": "wr\u00eft\u00e9r",
                "opensearch_password": FileSecret(password),
            }
        )
        async with create_client(connection) as client:
            await client.info()
            password.write_text("second:one")
            await client.info()
    # RFC 7617 with UTF-8: a password may have a colon, a name has none.
    assert server.headers == [
        "Basic " + b64encode(f"wr\u00eft\u00e9r:{secret}".encode()).decode() for secret in ("first", "second:one")
    ]


async def test_without_a_user_there_is_no_header() -> None:
    async with serving() as server:
        async with create_client(OpenSearchConnection.model_validate({"opensearch_url": server.url})) as client:
            await client.info()
        assert server.headers == [""]


async def test_a_new_connection_shows_and_trusts_the_new_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_credentials, "_by_address", {})
    authority, other = Authority(tmp_path / "authority"), Authority(tmp_path / "other", "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca_file))
    context.verify_mode = ssl.CERT_REQUIRED
    before, after = authority.issue("server"), other.issue("server")
    context.load_cert_chain(before.certificate, before.key)
    first, second = authority.issue("first"), authority.issue("second")
    files = {name: tmp_path / name for name in ("ca.crt", "tls.crt", "tls.key")}
    for file, content in zip(files.values(), (authority.ca_file, first.certificate, first.key), strict=True):
        file.write_bytes(content.read_bytes())
    async with serving(context) as server:
        connection = OpenSearchConnection.model_validate(
            {
                "opensearch_url": server.url,
                "opensearch_ca_file": files["ca.crt"],
                "opensearch_cert_file": files["tls.crt"],
                "opensearch_key_file": files["tls.key"],
            }
        )
        async with create_client(connection) as client:
            await client.info()
            # A certificate without its key is not taken.
            files["tls.crt"].write_bytes(second.certificate.read_bytes())
            await client.info()
            files["tls.key"].write_bytes(second.key.read_bytes())
            await client.info()
            assert server.users == ["first", "first", "second"]
            # Of two authorities both are trusted, and of the second one only what it has signed.
            files["ca.crt"].write_bytes(authority.ca_file.read_bytes() + other.ca_file.read_bytes())
            await client.info()
            context.load_cert_chain(after.certificate, after.key)
            await client.info()
            files["ca.crt"].write_bytes(other.ca_file.read_bytes())
            await client.info()
            context.load_cert_chain(before.certificate, before.key)
            with pytest.raises(NotConnectedError, match="certificate verify failed"):
                await client.info()
            assert describe_refusal().startswith(f"{server.url}: its certificate is not trusted (")
            assert describe_refusal().endswith(
                "the authority that signed its certificate in SCHEDULERLOG_OPENSEARCH_CA_FILE"
            )
            context.load_cert_chain(after.certificate, after.key)
            await client.info()
            assert describe_refusal() == ""


@contextmanager
def refusing(context: ssl.SSLContext) -> Iterator[str]:
    """A server that sends its alert as OpenSearch does, for one connection; asyncio's closes without a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection.dup() as below:
                with pytest.raises(ssl.SSLError):
                    context.wrap_socket(connection, server_side=True)
                below.shutdown(socket.SHUT_WR)
                while below.recv(4096):
                    pass

        thread = threading.Thread(target=refuse)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


async def test_a_certificate_that_the_server_does_not_trust_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_credentials, "_by_address", {})
    authority, other = Authority(tmp_path / "authority"), Authority(tmp_path / "other", "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca_file))
    # With TLS 1.3 the alert may come before the request is sent: tests/integration/pipeline/test_secured_opensearch.py.
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, ssl.TLSVersion.TLSv1_2
    server_pair, client_pair = authority.issue("server"), other.issue("client")
    context.load_cert_chain(server_pair.certificate, server_pair.key)
    with refusing(context) as url:
        fields = {
            "opensearch_url": url,
            "opensearch_ca_file": authority.ca_file,
            "opensearch_cert_file": client_pair.certificate,
            "opensearch_key_file": client_pair.key,
        }
        async with create_client(OpenSearchConnection.model_validate(fields)) as client:
            with pytest.raises(NotConnectedError):
                await client.info()
    refusal = describe_refusal()
    assert refusal.startswith(f"{url}: it refuses our certificate (")
    assert refusal.endswith("): correct SCHEDULERLOG_OPENSEARCH_CERT_FILE and its key, which it does not trust")
