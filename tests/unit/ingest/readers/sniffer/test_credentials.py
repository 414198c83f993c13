"""Whom the sniffer's service lets in, over real connections."""

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


def secured_by(authority: Authority) -> GrpcOptions:
    pair = authority.issue("server")
    return GrpcOptions(cert_file=pair.certificate, key_file=pair.key, client_ca_file=authority.ca_file)


def client(authority: Authority, pair: CertificatePair | None) -> grpc.ChannelCredentials:
    shown = (pair.key.read_bytes(), pair.certificate.read_bytes()) if pair else (None, None)
    return grpc.ssl_channel_credentials(authority.ca_file.read_bytes(), *shown)


async def taken(port: int, credentials: grpc.ChannelCredentials | None) -> None:
    """Raises ``grpc.aio.AioRpcError`` where the service lets nobody in with these."""
    at = f"127.0.0.1:{port}"
    # Channels of one process share connections unless an option forbids it.
    options = [("grpc.use_local_subchannel_pool", 1)]
    opened = grpc.aio.secure_channel(at, credentials, options) if credentials else grpc.aio.insecure_channel(at)
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

    running, port = create_server(str(LOOPBACK), take, create_credentials(LOOPBACK, secured_by(ours)))
    await running.start()
    try:
        await taken(port, client(ours, ours.issue("scheduler")))
        for shown in (None, client(ours, None), client(ours, other.issue("scheduler"))):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await taken(port, shown)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert len(requests) == 1
    finally:
        await running.stop(None)


async def test_m13_a_replaced_certificate_is_shown_and_a_broken_one_is_not(tmp_path: Path) -> None:
    ours, next_ones = Authority(tmp_path / "ours"), Authority(tmp_path / "next")
    asked = secured_by(ours)
    assert asked.cert_file
    assert asked.key_file
    assert asked.client_ca_file

    async def take(_: dict[str, Any]) -> None:
        pass

    running, port = create_server(str(LOOPBACK), take, create_credentials(LOOPBACK, asked))
    await running.start()
    try:
        old = client(ours, ours.issue("scheduler"))
        asked.key_file.write_bytes(b"-----BEGIN PRIVATE KEY-----\n")
        await taken(port, old)
        pair = next_ones.issue("server")
        asked.cert_file.write_bytes(pair.certificate.read_bytes())
        asked.key_file.write_bytes(pair.key.read_bytes())
        asked.client_ca_file.write_bytes(next_ones.ca_file.read_bytes())
        await taken(port, client(next_ones, next_ones.issue("scheduler")))
    finally:
        await running.stop(None)


def test_m13_beyond_loopback_it_starts_with_the_authority_of_its_clients_or_as_insecure(tmp_path: Path) -> None:
    secured = secured_by(Authority(tmp_path / "ours"))
    for lacking in (GrpcOptions(), replace(secured, client_ca_file=None)):
        with pytest.raises(MistakeError, match=r"192\.0\.2\.1:4242 .* --client-ca-file, or --insecure"):
            create_credentials(ANYWHERE, lacking)
    assert create_credentials(ANYWHERE, secured)
    assert create_credentials(ANYWHERE, GrpcOptions(insecure=True)) is None
    assert create_credentials(LOOPBACK, GrpcOptions()) is None


def test_m13_files_that_cant_be_used_are_named(tmp_path: Path) -> None:
    secured = secured_by(Authority(tmp_path / "ours"))
    with pytest.raises(MistakeError, match="--cert-file and --key-file together"):
        create_credentials(LOOPBACK, replace(secured, key_file=None))
    with pytest.raises(MistakeError, match=r"--key-file: .* can't be read"):
        create_credentials(LOOPBACK, replace(secured, key_file=tmp_path / "absent"))
