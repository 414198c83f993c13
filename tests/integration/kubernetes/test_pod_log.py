"""HAMi's log through the API server and its proxy to a kubelet: cut, restarted, killed, and every line once."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from schemas.events import AttemptSummarized
from tests.support.backends import Addresses
from tests.support.builders.hami_lines import a_line, write_failure, write_request, write_start, write_unfit
from tests.support.control_plane.kubelet import Kubelet, serving_the_log_of
from tests.support.control_plane.plain_scheduler import list_attempts, read_events
from tests.support.control_plane.service_account import a_kubeconfig, service_account
from tests.support.harness.forked import Forked
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

POD = "hami-scheduler-0"
REFUSAL = "1/8 CardInsufficientMemory, 7/8 CardTimeSlicingExhausted"
TWO_LINES = [a_line('"node unregister" err=<'), b"\tone", b"\ttwo", b" >"]


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """Kubeconfig of a service account that is allowed what docs/sources-hami.md says about `--pod`."""
    text = (Path(__file__).parents[3] / "docs" / "sources-hami.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    (rules,) = [block["rules"] for block in blocks if "rules" in block]
    with service_account(control_plane, namespace, rules, folder := tmp_path / "account"):
        yield a_kubeconfig(folder, control_plane)


@pytest.fixture
def kafka(backends: Addresses) -> str:
    asyncio.run(provision_all(backends.bootstrap_servers))
    return backends.bootstrap_servers


def an_attempt(name: str, namespace: str) -> list[bytes]:
    """Log of a pod that is refused by one node, written in five lines and one of several lines."""
    pod = f"{namespace}/{name}"
    text = [write_start(name, namespace), write_request(1, pod=pod), write_unfit("node-a", REFUSAL, pod)]
    return [*text, *TWO_LINES, write_failure(1, pod)]


class Reader:
    """``python -m ingest hami-log --pod`` as a process."""

    def __init__(self, kubeconfig: Path, pod: str, kafka: str, folder: Path) -> None:
        self._metrics_port = find_free_port(KUBERNETES_PORTS)
        self.log = folder / "reader.log"
        command = ["ingest", "hami-log", "--pod", pod, "--kafka", kafka]
        command += ["--kubeconfig", str(kubeconfig), "--checkpoint", str(folder / "checkpoint.json")]
        with self.log.open("ab") as output:
            command += ["--metrics-address", str(self._metrics_port)]
            self.process = Forked(*command, stdout=output, stderr=output)

    def count_lines(self) -> int:
        """Count the lines that it has read since it was started."""
        try:
            text = httpx.get(f"http://127.0.0.1:{self._metrics_port}/metrics", trust_env=False, timeout=30).text
        except httpx.HTTPError:
            return 0
        rows = [row for row in text.splitlines() if row.startswith("schedulerlog_ingest_lines_total")]
        return int(sum(float(row.rpartition(" ")[2]) for row in rows))


@contextlib.contextmanager
def reading(kubeconfig: Path, pod: str, kafka: str, folder: Path) -> Iterator[Reader]:
    reader = Reader(kubeconfig, pod, kafka, folder)
    try:
        yield reader
    finally:
        reader.process.terminate()
        reader.process.wait(timeout=120)


@contextlib.contextmanager
def talking(kubelet: Kubelet, namespace: str) -> Iterator[list[str]]:
    """A container that says the attempts of one pod after the other; gives their names."""
    names: list[str] = []
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.wait(0.02):
            names.append(f"pod-{len(names)}")
            kubelet.write(an_attempt(names[-1], namespace))

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield names
    finally:
        is_over.set()
        thread.join()


def count_of(kubelet: Kubelet) -> int:
    """Count lines as the reader does: a value of several lines is one."""
    return len(kubelet.written) - 3 * sum(line == b"\tone" for line in kubelet.written)


def read_checkpoint(folder: Path) -> bytes:
    """Read its content, which the reader writes when Kafka has what it read; empty before the first."""
    path = folder / "checkpoint.json"
    return path.read_bytes() if path.exists() else b""


def cut_a_connection(kubelet: Kubelet) -> bool:
    """Cut a connection, and tell whether there was one."""
    before = kubelet.proxy.cuts
    kubelet.proxy.cut()
    return kubelet.proxy.cuts > before


def read_summaries(kafka: str, namespace: str) -> list[AttemptSummarized]:
    return list_attempts(asyncio.run(read_events(kafka, f"{namespace}/")))


def test_a_log_through_the_api_server_is_read_once_over_cuts_and_its_restart(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, kafka: str, tmp_path: Path
) -> None:
    with serving_the_log_of(control_plane, namespace, POD, tmp_path / "log") as kubelet:
        with reading(kubeconfig, f"{namespace}/{POD}", kafka, tmp_path) as reader:
            with talking(kubelet, namespace):
                eventually(lambda: reader.count_lines() > 100, lambda: reader.log.read_text())
                for _ in range(4):
                    # The reader waits before it connects again: a busy machine may find nothing to cut for a while.
                    eventually(lambda: cut_a_connection(kubelet), lambda: reader.log.read_text())
                control_plane.api_server.kill()
                time.sleep(1)
                control_plane.api_server.start()
                before = reader.count_lines()
                eventually(lambda: reader.count_lines() > before + 100, lambda: reader.log.read_text())
            kubelet.start_again()
            eventually(lambda: cut_a_connection(kubelet), lambda: reader.log.read_text())
            with talking(kubelet, f"{namespace}-again") as again:
                eventually(lambda: len(again) > 20, "it says nothing")
            # Lines that were read twice would stand before this one, which is the last.
            kubelet.write(an_attempt("last", namespace))
            eventually(lambda: reader.count_lines() >= count_of(kubelet), lambda: reader.log.read_text())
            assert reader.count_lines() == count_of(kubelet)
        assert kubelet.proxy.cuts >= 5


def test_a_reader_that_is_killed_continues_behind_what_kafka_took(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, kafka: str, tmp_path: Path
) -> None:
    pod = f"{namespace}/{POD}"
    with serving_the_log_of(control_plane, namespace, POD, tmp_path / "log") as kubelet:
        with talking(kubelet, namespace) as names:
            for _ in range(3):
                with reading(kubeconfig, pod, kafka, tmp_path) as reader:
                    eventually(lambda: reader.count_lines() > 150, lambda: reader.log.read_text())
                    before = read_checkpoint(tmp_path)
                    eventually(lambda: read_checkpoint(tmp_path) != before, lambda: reader.log.read_text())  # noqa: B023
                    reader.process.kill()
        with reading(kubeconfig, pod, kafka, tmp_path) as reader:
            eventually(
                lambda: {summary.pod.name for summary in read_summaries(kafka, namespace)} >= set(names),
                "attempts are missing",
            )
            assert reader.count_lines() < count_of(kubelet) / 2, "the last one did not read it all again"
    summaries = read_summaries(kafka, namespace)
    assert sorted(summary.pod.name for summary in summaries) == sorted(names)
    assert {summary.status for summary in summaries} == {"failed"}


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (f"{POD}/sidecar", "container sidecar is not valid for pod"),
        ("nobody", 'pods "nobody" not found'),
    ],
)
def test_what_is_not_there_is_reported_and_ends_the_reader(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, kafka: str, tmp_path: Path, pod: str, text: str
) -> None:
    with serving_the_log_of(control_plane, namespace, POD, tmp_path / "log"):
        reader = Reader(kubeconfig, f"{namespace}/{pod}", kafka, tmp_path)
        assert reader.process.wait(timeout=120) == 2
    assert text in reader.log.read_text()
