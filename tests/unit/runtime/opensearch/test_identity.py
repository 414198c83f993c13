"""Identity of this process, as a server hears it with each request."""

import ssl
from base64 import b64encode
from pathlib import Path

import pytest
from aiohttp import web

from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import FileSecret
from tests.support.certificates import Authority


async def test_each_request_has_the_password_of_its_time(tmp_path: Path) -> None:
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request.headers.get("authorization", ""))
        return web.json_response({})

    server = web.Application()
    server.router.add_get("/", answer)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    password = tmp_path / "password"
    password.write_text("first")
    connection = OpenSearchConnection.model_validate(
        {
            "opensearch_url": f"http://127.0.0.1:{runner.addresses[0][1]}",
            "opensearch_username": "wr\u00eft\u00e9r",
            "opensearch_password": FileSecret(password),
        }
    )
    try:
        async with create_client(connection) as client:
            await client.info()
            password.write_text("second:one")
            await client.info()
    finally:
        await runner.cleanup()
    # RFC 7617 with UTF-8: a password may have a colon, a name has none.
    assert heard == [
        "Basic " + b64encode(f"wr\u00eft\u00e9r:{secret}".encode()).decode() for secret in ("first", "second:one")
    ]


async def test_a_new_connection_shows_the_new_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport
        subject = dict(pair[0] for pair in request.transport.get_extra_info("peercert")["subject"])
        heard.append(subject["commonName"])
        # The next request opens a connection of its own.
        return web.json_response({}, headers={"connection": "close"})

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.ca_file))
    context.verify_mode = ssl.CERT_REQUIRED
    pair = authority.issue("server")
    context.load_cert_chain(pair.certificate, pair.key)
    server = web.Application()
    server.router.add_get("/", answer)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    first, second = authority.issue("first"), authority.issue("second")
    files = {name: tmp_path / name for name in ("tls.crt", "tls.key")}
    for name, path in zip(files, (first.certificate, first.key), strict=True):
        files[name].write_bytes(path.read_bytes())
    connection = OpenSearchConnection.model_validate(
        {
            "opensearch_url": f"https://127.0.0.1:{runner.addresses[0][1]}",
            "opensearch_ca_file": authority.ca_file,
            "opensearch_cert_file": files["tls.crt"],
            "opensearch_key_file": files["tls.key"],
        }
    )
    try:
        async with create_client(connection) as client:
            await client.info()
            # A certificate without its key is not taken.
            files["tls.crt"].write_bytes(second.certificate.read_bytes())
            await client.info()
            files["tls.key"].write_bytes(second.key.read_bytes())
            await client.info()
    finally:
        await runner.cleanup()
    assert heard == ["first", "first", "second"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
async def test_without_a_user_there_is_no_header(url: str) -> None:
    async with create_client(OpenSearchConnection.model_validate({"opensearch_url": url})) as client:
        (opened,) = client.transport.connection_pool.connections
        assert opened._http_auth(method="GET", url=url, body=None, headers={}) == {}
