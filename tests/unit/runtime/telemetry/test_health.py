"""The probes and metrics of a process, on the address that was asked for."""

import socket
import threading
from contextlib import ExitStack, nullcontext
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter

from runtime.errors import SettingError
from runtime.settings.addresses import HostPort
from runtime.telemetry.health import MAX_CONNECTIONS, report_no_problem, serving
from tests.support.waiting import until


def answer(address: HostPort | None, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{address}{path}") as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_metrics_and_probes_are_answered(host: str) -> None:
    registry, waits_for = CollectorRegistry(), ["waiting for Kafka"]
    Counter("seen", "Things.", registry=registry).inc()
    try:
        with serving(HostPort(host, 0), registry, report_no_problem, waits_for.__getitem__(0).__str__) as address:
            assert address is not None
            assert address.port > 0
            assert "seen_total 1.0" in answer(address, "/metrics")[1]
            assert answer(address, "/healthz?verbose") == (200, "ok\n")
            assert answer(address, "/readyz") == (503, "waiting for Kafka\n")
            assert answer(address, "/other")[0] == 404
    except SettingError:
        if host == "127.0.0.1":
            raise
        pytest.skip("this machine has no IPv6")


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:9", 200), ("10.1.2.3", 200), ("rebound.example:9", 421), ("", 421), ("[", 421)]
)
def test_n12_on_loopback_metrics_are_not_read_under_the_name_of_a_page(host: str, status: int) -> None:
    with serving(HostPort("127.0.0.1", 0), CollectorRegistry()) as address:
        request = Request(f"http://{address}/metrics", headers={"Host": host})
        with nullcontext() if status == 200 else pytest.raises(HTTPError, match=str(status)):
            urlopen(request).close()  # noqa: S310


def test_a_thousand_half_open_connections_keep_no_probe_waiting_and_take_few_threads() -> None:
    """They were as many threads, as long as the process had descriptors."""
    before = threading.active_count()
    with serving(HostPort("127.0.0.1", 0), CollectorRegistry()) as address, ExitStack() as stack:
        assert address
        threads = [0]
        for number in range(1000):
            half_open = stack.enter_context(socket.create_connection(address, timeout=30))
            half_open.sendall(b"GET /metrics HTTP/1.1\r\nHo")
            if number % 100 == 99:
                assert answer(address, "/healthz") == (200, "ok\n")
                threads.append(threading.active_count() - before)
        # Beside the open ones there are those whose thread is about to read the end.
        assert until(lambda: threading.active_count() - before <= MAX_CONNECTIONS + 1), threading.active_count()
        assert max(threads) < 3 * MAX_CONNECTIONS
        assert answer(address, "/metrics")[0] == 200


def test_n13_a_client_that_sends_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kept a thread of the process for as long as it liked."""
    monkeypatch.setattr("runtime.telemetry.health.SILENT_SECONDS", 0.1)
    with (
        serving(HostPort("127.0.0.1", 0), CollectorRegistry()) as address,
        socket.create_connection(address or ("", 0), timeout=30) as silent,
    ):
        assert silent.recv(1) == b""


def test_without_an_address_nothing_listens() -> None:
    with serving(None, CollectorRegistry()) as address:
        assert address is None


def test_an_address_in_use_is_a_mistake_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingError, match=f"^--metrics-address: can't listen on 127.0.0.1:{port}: Address already"),
            serving(HostPort("127.0.0.1", port), CollectorRegistry()),
        ):
            pass
