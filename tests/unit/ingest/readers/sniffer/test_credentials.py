"""Clients that the sniffer's service accepts, over real connections."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from ingest.errors import MistakeError
from ingest.readers.sniffer.credentials import create_credentials
from ingest.readers.sniffer.service import SERVICE, SendRequest, SendResponse, create_server
from ingest.reading.options import GrpcOptions
from runtime.http.server_tls import CertificatePair
from runtime.settings.addresses import HostPort
from tests.support.certificates import Authority

LOOPBACK, ANYWHERE = HostPort("127.0.0.1", 0), HostPort("192.0.2.1", 4242)


def make_options(authority: Authority) -> GrpcOptions:
    pair = authority.issue("server")
    return GrpcOptions(cert_file=pair.certificate, key_file=pair.key, client_ca_file=authority.ca_file)


def make_client_credentials(authority: Authority, pair: CertificatePair | None) -> grpc.ChannelCredentials:
    files = (pair.key.read_bytes(), pair.certificate.read_bytes()) if pair else (None, None)
    return grpc.ssl_channel_credentials(authority.ca_file.read_bytes(), *files)


async def send_request(port: int, credentials: grpc.ChannelCredentials | None) -> None:
    """Send a request. Raises ``grpc.aio.AioRpcError`` if the service does not accept the credentials."""
    address = f"127.0.0.1:{port}"
    # Channels of one process share connections unless an option forbids it.
    options = [("grpc.use_local_subchannel_pool", 1)]
    opened = (
        grpc.aio.secure_channel(address, credentials, options) if credentials else grpc.aio.insecure_channel(address)
    )
    async with opened as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/Send",
            request_serializer=SendRequest.SerializeToString,
            response_deserializer=SendResponse.FromString,
        )
        await asyncio.wait_for(call(SendRequest(endpoint="bind", pod="a")), 30)


async def test_m13_only_who_shows_a_certificate_of_the_authority_is_let_in(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    requests: list[Any] = []

    async def take(request: dict[str, Any]) -> None:
        requests.append(request)

    running, port = create_server(str(LOOPBACK), take, create_credentials(LOOPBACK, make_options(ours)))
    await running.start()
    try:
        await send_request(port, make_client_credentials(ours, ours.issue("scheduler")))
        for files in (
            None,
            make_client_credentials(ours, None),
            make_client_credentials(ours, other.issue("scheduler")),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await send_request(port, files)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert len(requests) == 1
    finally:
        await running.stop(None)


async def test_m13_a_replaced_certificate_is_shown_and_a_broken_one_is_not(tmp_path: Path) -> None:
    ours, next_ones = Authority(tmp_path / "ours"), Authority(tmp_path / "next")
    grpc_options = make_options(ours)
    assert grpc_options.cert_file
    assert grpc_options.key_file
    assert grpc_options.client_ca_file

    async def take(_: dict[str, Any]) -> None:
        pass

    running, port = create_server(str(LOOPBACK), take, create_credentials(LOOPBACK, grpc_options))
    await running.start()
    try:
        old = make_client_credentials(ours, ours.issue("scheduler"))
        grpc_options.key_file.write_bytes(b"-----BEGIN PRIVATE KEY-----\n")
        await send_request(port, old)
        pair = next_ones.issue("server")
        grpc_options.cert_file.write_bytes(pair.certificate.read_bytes())
        grpc_options.key_file.write_bytes(pair.key.read_bytes())
        grpc_options.client_ca_file.write_bytes(next_ones.ca_file.read_bytes())
        await send_request(port, make_client_credentials(next_ones, next_ones.issue("scheduler")))
    finally:
        await running.stop(None)


def test_m13_beyond_loopback_it_starts_with_the_authority_of_its_clients_or_as_insecure(tmp_path: Path) -> None:
    secured = make_options(Authority(tmp_path / "ours"))
    for lacking in (GrpcOptions(), replace(secured, client_ca_file=None)):
        with pytest.raises(MistakeError, match=r"192\.0\.2\.1:4242 .* --client-ca-file, or --insecure"):
            create_credentials(ANYWHERE, lacking)
    assert create_credentials(ANYWHERE, secured)
    assert create_credentials(ANYWHERE, GrpcOptions(insecure=True)) is None
    assert create_credentials(LOOPBACK, GrpcOptions()) is None


def test_m13_files_that_cant_be_used_are_named(tmp_path: Path) -> None:
    secured = make_options(Authority(tmp_path / "ours"))
    with pytest.raises(MistakeError, match="--cert-file and --key-file together"):
        create_credentials(LOOPBACK, replace(secured, key_file=None))
    with pytest.raises(MistakeError, match=r"--key-file: .* can't be read"):
        create_credentials(LOOPBACK, replace(secured, key_file=tmp_path / "absent"))
