"""The API over HTTPS, with its probes on an address of their own, while neither Kafka nor OpenSearch is there."""

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from runtime.http.certificate_authority import Authority
from tests.support.harness.steady_load import steady_load
from tests.support.waiting import eventually

NOWHERE = {
    "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:1",
}


@contextmanager
def started(**settings: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The URL that it prints, and the process."""
    command = [sys.executable, "-m", "api", "serve", "--listen", "0"]
    with subprocess.Popen(command, env=os.environ | NOWHERE | settings, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield next(word for word in process.stdout.readline().split() if "://" in word), process
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=30).is_success
    except httpx.TransportError:
        return False


def read_serial(url: str, authority: Path) -> int:
    """Read the serial number of the certificate that is served; it is checked by this authority."""
    with httpx.stream(
        "GET", f"{url}/healthz", verify=ssl.create_default_context(cafile=authority), trust_env=False
    ) as got:
        certificate = got.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    return int(certificate["serialNumber"], 16)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    new_authority = Authority.create("the tests' authority")
    (tmp_path / "ca.crt").write_bytes(new_authority.certificate_pem)
    return new_authority


def write_pair(authority: Authority, folder: Path) -> dict[str, str]:
    certificate, key = authority.issue("api")
    for name, content in {"tls.crt": certificate, "tls.key": key}.items():
        # Replaced as a whole, as a kubelet replaces the files of a Secret.
        (folder / f"{name}.new").write_bytes(content)
        (folder / f"{name}.new").replace(folder / name)
    return {
        "SCHEDULERLOG_API_CERT_FILE": str(folder / "tls.crt"),
        "SCHEDULERLOG_API_KEY_FILE": str(folder / "tls.key"),
    }


def test_a_renewed_certificate_is_served_without_a_restart_while_callers_ask(
    authority: Authority, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.crt"
    trusted = ssl.create_default_context(cafile=ca_file)
    with started(**write_pair(authority, tmp_path)) as (url, _):
        assert url.startswith("https://127.0.0.1:")

        def ask(_number: int) -> None:
            # Over a connection of its own.
            assert httpx.get(f"{url}/healthz", verify=trusted, trust_env=False, timeout=30).is_success

        first = read_serial(url, ca_file)
        with steady_load(ask, per_second=20) as load:
            load.wait_for_steps(10)
            write_pair(authority, tmp_path)
            eventually(lambda: read_serial(url, ca_file) != first, "the first one is still served")
            load.wait_for_steps(10)


def test_probes_succeed_while_no_store_answers(tmp_path: Path) -> None:
    port = find_free_port(KUBERNETES_PORTS)
    with started(SCHEDULERLOG_METRICS_ADDRESS=str(port)) as (url, process):
        probes = f"http://127.0.0.1:{port}"
        eventually(lambda: answers(f"{probes}/healthz"), "it is not alive")
        # As soon as it knows that Kafka can't be read.
        eventually(lambda: answers(f"{probes}/readyz"), "it is not ready")
        assert (
            "schedulerlog_api_topic_following 0.0" in httpx.get(f"{probes}/metrics", trust_env=False, timeout=30).text
        )
        # Its own page for people says what is wrong.
        assert httpx.get(f"{url}/readyz", trust_env=False, timeout=30).status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert process.poll() is None


def test_a_key_without_its_certificate_is_one_line(authority: Authority, tmp_path: Path) -> None:
    settings = write_pair(authority, tmp_path)
    del settings["SCHEDULERLOG_API_CERT_FILE"]
    command = [sys.executable, "-m", "api", "serve", "--listen", "0"]
    done = subprocess.run(
        command, env=os.environ | NOWHERE | settings, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr == "SCHEDULERLOG_API_CERT_FILE: is missing, HTTPS needs both files\n"
