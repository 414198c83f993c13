"""A context that lasts longer than the files that it is made of."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from runtime.settings.present_context import PresentContext
from tests.support.certificates import Authority

Loop = Callable[[], asyncio.AbstractEventLoop]


async def is_trusted(context: ssl.SSLContext, authority: Authority) -> bool:
    """Tell whether a connection with the context accepts a server of the authority."""
    pair = authority.issue("server")
    of_server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    of_server.load_cert_chain(pair.certificate, pair.key)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=of_server)
    async with server:
        try:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=context)
        except ssl.SSLCertVerificationError:
            return False
        writer.close()
        return True


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_trusts_the_authorities_that_the_file_holds_when_it_begins(loop: Loop, tmp_path: Path) -> None:
    before, after = Authority(tmp_path / "before", "before"), Authority(tmp_path / "after", "after")
    file = tmp_path / "ca.crt"
    file.write_bytes(before.ca_file.read_bytes())
    context = PresentContext("OpenSearch", file)

    async def list_trusted() -> list[bool]:
        return [await is_trusted(context, authority) for authority in (before, after)]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(list_trusted()) == [True, False]
        file.write_bytes(before.ca_file.read_bytes() + after.ca_file.read_bytes())
        assert runner.run(list_trusted()) == [True, True]
        file.write_bytes(after.ca_file.read_bytes())
        assert runner.run(list_trusted()) == [False, True]


async def test_a_file_that_is_no_certificate_for_a_moment_changes_nothing_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, file = Authority(tmp_path / "authority"), tmp_path / "ca.crt"
    file.write_bytes(authority.ca_file.read_bytes())
    context = PresentContext("Kafka", file)
    with caplog.at_level(logging.WARNING):
        file.write_text("")
        assert await is_trusted(context, authority)
        assert await is_trusted(context, authority)
        file.unlink()
        assert await is_trusted(context, authority)
    assert caplog.messages == [
        f"TLS to Kafka: {file}: {cause}; the files of before are used"
        for cause in ("no certificates in PEM form", "No such file or directory")
    ]


def test_without_files_at_the_start_there_is_no_context(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        PresentContext("Kafka", tmp_path / "ca.crt")
