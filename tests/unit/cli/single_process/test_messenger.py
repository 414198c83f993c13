"""The part that sends messages: where it runs, and how it reaches the API of its own process."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from cli.single_process import messenger
from cli.single_process.messenger import has_targets_file, reach_own_api, read_policy, send_messages
from cli.single_process.settings import SingleProcessSettings
from runtime.errors import SettingError
from runtime.settings.settings import read
from runtime.telemetry.parts_health import PartsHealth
from tests.support.certificates import Authority
from tests.support.harness.watching import wait_until

TARGETS = "bus: {kind: cloudevents, url: 'http://127.0.0.1:1'}"


def create_settings(**values: Any) -> SingleProcessSettings:
    stores = {"kafka_bootstrap_servers": "127.0.0.1:9092", "opensearch_url": "http://127.0.0.1:9200"}
    return read(SingleProcessSettings, **stores, **values)


def is_asked(settings: SingleProcessSettings, *, has_api: bool = True, has_cluster: bool = True) -> bool:
    return has_targets_file(settings, has_api=has_api, has_cluster=has_cluster)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "targets.yaml"
    file.write_text(TARGETS)
    return file


def test_it_runs_only_where_a_file_names_targets(file: Path) -> None:
    assert not is_asked(create_settings())
    # A Secret that nobody has made is an empty folder.
    assert not is_asked(create_settings(notify_targets=file.with_name("none.yaml")))
    assert is_asked(create_settings(notify_targets=file))


@pytest.mark.parametrize(
    ("parts", "words"),
    [({"has_api": False}, "the part api"), ({"has_cluster": False}, "a cluster")],
)
def test_targets_that_no_message_could_reach_are_an_error(file: Path, parts: dict[str, bool], words: str) -> None:
    with pytest.raises(SettingError, match=rf"^--targets: messages need {words}.*--without notify"):
        is_asked(create_settings(notify_targets=file), **parts)


def test_an_api_that_checks_callers_needs_a_token(file: Path) -> None:
    settings = {"notify_targets": file, "api_authentication": "kubernetes"}
    with pytest.raises(SettingError, match=r"^--api-token-file: is missing"):
        read_policy(create_settings(**settings))
    assert list(read_policy(create_settings(**settings | {"notify_api_token": "t"})).targets.get()) == ["bus"]


class TargetsReadError(Exception):
    """End of the part at the step after the targets."""


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def test_a_mistake_in_the_targets_waits_for_its_correction_and_the_part_is_ready_meanwhile(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def reach(*_: object) -> None:
        raise TargetsReadError

    monkeypatch.setattr(messenger, "MISTAKE_SECONDS", 0.01)
    monkeypatch.setattr(messenger, "reach_own_api", reach)
    write(file, "bus: {kind: pigeon}")
    health = PartsHealth(["notify"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        part = asyncio.create_task(
            send_messages(create_settings(notify_targets=file), server, health.serve_part("notify"))
        )
        async with asyncio.timeout(10):
            await wait_until(lambda: "pigeon" in caplog.text)
        assert health.check_ready() == ""
        assert caplog.records[-1].levelname == "ERROR"
        assert not part.done()
        write(file, TARGETS)
        with pytest.raises(TargetsReadError):
            await asyncio.wait_for(part, 10)


@pytest.mark.parametrize(("listening", "reached"), [("", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")])
def test_it_asks_the_port_that_the_api_listens_on(listening: str, reached: str) -> None:
    with socket.create_server((listening, 0)) as server:
        api = reach_own_api(create_settings(api_hosts="gpu.example.org,localhost"), server)
        assert api.url == f"http://{reached}:{server.getsockname()[1]}"
    # A name that the API answers: it refuses others.
    assert api.build_headers() == {"Host": "gpu.example.org"}


async def connect(server: Path, key: Path, context: Any) -> None:
    """Connect to a server with this certificate."""
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(server, key)
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=secured) as serving:
        port = serving.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.2")
        writer.close()


async def test_it_trusts_the_certificate_of_its_own_process_whatever_its_names_and_no_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, other = authority.issue("own"), authority.issue("other")
    settings = create_settings(api_cert_file=pair.certificate, api_key_file=pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        api = reach_own_api(settings, listening)
    assert api.url.startswith("https://")
    await connect(pair.certificate, pair.key, api.build_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        await connect(other.certificate, other.key, api.build_context())
