"""A mistake in what is typed is one line that names the setting; a simulation says what the API would."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from runtime.settings.variables import KAFKA as KAFKA_VARIABLE
from scheduler.__main__ import app
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.builders.vendor_examples import FOLDER, NAMES

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([a_node("node1"), a_pod("other")]))
    return path


def run(*words: object, **environment: str) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={KAFKA_VARIABLE: None, **environment})


def serve(cluster: Path, *words: object) -> Result:
    https = [] if "--cert-file" in words or "--key-file" in words else ["--insecure-http"]
    return run("serve", "--cluster", cluster, "--spool", cluster.parent / "spool", *https, *words)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], "no Kafka: give --kafka HOST:PORT, set SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS, or say --no-publish"),
        (["--kafka", "broker"], "--kafka: 'broker' is not HOST:PORT: write for example 127.0.0.1:9092"),
        (["--kafka", "broker:99999"], "--kafka: 'broker:99999' is not HOST:PORT"),
        (["--no-publish", "--node-lock-timeout", "soon"], "--node-lock-timeout: 'soon' is not a duration"),
        (["--no-publish", "--node-policy", "best"], "--node-policy: Input should be 'binpack' or 'spread'"),
        (["--no-publish", "--spool-max-size", "0"], "--spool-max-size: Input should be greater than 0"),
        (["--no-publish", "--v", "high"], "--v: 'high' is not a level, write 0, 2, 4 or 5"),
        (["--no-publish", "-v=-1"], "--v: '-1' is not a level, write 0, 2, 4 or 5"),
        (["--no-publish", "--whole-nodes", "x"], "--whole-nodes: Input should be 'place' or 'simulate'"),
        (["--no-publish", "--spool-sync", "never"], "--spool-sync: Input should be 'always' or 'interval'"),
        (["--no-publish", "--listen", "192.0.2.1:0"], "--listen: can't listen on 192.0.2.1:0"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(cluster: Path, words: list[str], value: str) -> None:
    result = serve(cluster, *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(value)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], "no certificate: give --cert-file and --key-file, or say --insecure-http"),
        (["--cert-file", "c.pem"], "--key-file: is missing, HTTPS needs both files"),
        (["--key-file", "k.pem"], "--cert-file: is missing, HTTPS needs both files"),
        (["--cert-file", "none.pem", "--key-file", "k.pem"], "--cert-file: none.pem can't be read: No such file"),
        (["--cert-file", "c", "--key-file", "k", "--insecure-http"], "--insecure-http: a certificate is given too"),
    ],
)
def test_plain_http_has_to_be_asked_for_and_a_wrong_certificate_is_named(
    cluster: Path, words: list[str], value: str
) -> None:
    options = ["--cluster", cluster, "--spool", cluster.parent / "spool", "--listen", 0]
    result = run("serve", *options, "--no-publish", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(value)
    assert result.stderr.count("\n") == 1


def test_a_busy_port_is_one_line_that_names_it(cluster: Path, taken: int) -> None:
    result = serve(cluster, "--no-publish", "--listen", taken)
    assert result.exit_code == 2
    assert result.stderr == f"--listen: 127.0.0.1:{taken} is in use by another process, give another address\n"


def test_a_mistake_in_the_cluster_file_is_one_line_with_its_place(cluster: Path) -> None:
    cluster.write_text("kind: Node\nmetadata:\n  labels: {}\n")
    result = serve(cluster, "--no-publish", "--listen", 0)
    assert result.exit_code == 2
    assert result.stderr == f"{cluster}:3: the Node has no metadata.name, write name: under metadata\n"


def test_a_spool_that_can_not_be_a_folder_is_named(cluster: Path) -> None:
    (cluster.parent / "spool").write_text("a file")
    result = serve(cluster, "--no-publish", "--listen", 0)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"--spool: {cluster.parent / 'spool'} can't be used: ")


def simulate(cluster: Path, pod: Path, *words: str) -> Result:
    return run("simulate", "--cluster", cluster, "--pod", pod, *words)


@pytest.mark.parametrize("name", ["1-gpu-pod", "2-gpu-pod-default"])
def test_a_simulation_says_of_the_filter_what_was_worked_out_by_hand(name: str) -> None:
    result = simulate(EXAMPLES / "cluster.yaml", EXAMPLES / "pods" / f"{name}.yaml")
    assert result.exit_code == 0, result.output
    expected = json.loads((EXAMPLES / "expected" / f"{name}.json").read_text())
    answer = json.loads(result.stdout)
    assert answer["filter"] == expected["filter"]
    assert answer["bind"] == {"status": "", "summary": ""}
    assert answer["status"] == ("pending" if expected["status"] == "succeeded" else "failed")


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_each_vendor_would_be_placed(name: str) -> None:
    result = simulate(FOLDER / f"{name}.yaml", FOLDER / "pods" / f"{name}.yaml")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["filter"]["status"] == "passed"


def test_a_simulation_shows_more_when_asked(cluster: Path, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(yaml.safe_dump(a_pod()))
    assert set(json.loads(simulate(cluster, pod).stdout)) == {"status", "filter", "bind"}
    assert json.loads(simulate(cluster, pod, "--detail").stdout)["detail"]["chosen"] == "node1"


def test_a_simulation_of_a_pod_without_devices_says_so(cluster: Path, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(yaml.safe_dump(a_pod(containers=[a_container(gpus=0)])))
    result = simulate(cluster, pod)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "asks for no device" in result.stderr
