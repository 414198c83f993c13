import json
from pathlib import Path

from typer.testing import CliRunner

from ingest.__main__ import app
from tests.support.builders.hami_lines import failed, fit, requested, started, unfit

RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "logs" / "038.log"


def a_log(folder: Path, *texts: bytes) -> Path:
    path = folder / "hami.log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


def test_one_pod_is_explained_straight_from_its_log(tmp_path: Path) -> None:
    log = a_log(tmp_path, started(), requested(1), unfit("node1", "1/2 CardCordoned, 1/2 CardNotHealth"), failed(1))
    said = CliRunner().invoke(app, ["hami-log", str(log), "--explain", "trainer"])
    assert said.exit_code == 0, said.output
    answer = json.loads(said.stdout)
    assert answer["filter"]["summary"] == "no available node, 1 nodes do not meet"
    assert answer["filter"]["nodes"][0]["containers"][0]["reason"] == "1/2 CardCordoned, 1/2 CardNotHealth"
    assert "4 lines: 4 told" in said.stderr


def test_the_latest_attempt_is_the_one_that_is_explained(tmp_path: Path) -> None:
    log = a_log(tmp_path, started(), failed(1), started(at=60), fit("node1", "3.5", at=60.1))
    said = CliRunner().invoke(app, ["hami-log", str(log), "--explain", "ml/trainer", "--detail"])
    assert json.loads(said.stdout)["detail"]["fit_nodes"] == 1


def test_a_pod_that_the_log_does_not_know_is_a_mistake_with_what_was_read(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, b"other text")), "--explain", "trainer"])
    assert said.exit_code == 2
    assert "tells of no pod at all, and no line of it is one that its scheduler prints" in said.stderr
    assert "1 unknown" in said.stderr


def test_a_name_that_is_wrong_is_answered_with_those_that_the_log_has(tmp_path: Path) -> None:
    pods = [f"ml/other-{number}" for number in range(20)] + ["ml/trainer-0"]
    lines = [failed(1, pod, at=at) for at, pod in enumerate(pods)]
    said = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "ml/trainer"])
    assert said.exit_code == 2
    first = said.stderr.splitlines()[0]
    assert first.startswith("the log says nothing about a pod ml/trainer; it tells of ml/trainer-0, ")
    assert first.endswith(" and 13 more")


def test_one_name_in_two_namespaces_says_so(tmp_path: Path) -> None:
    lines = [failed(1), failed(2, "dev/trainer", at=9)]
    said = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "trainer"])
    assert json.loads(said.stdout)["filter"]["summary"] == "no available node, 2 nodes do not meet"
    assert "dev/trainer, ml/trainer: the latest attempt, which follows, is of dev/trainer" in said.stderr


def test_an_empty_log_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    said = CliRunner().invoke(app, ["hami-log", str(tmp_path / "empty.log"), "--explain", "x"])
    assert (said.exit_code, said.stderr.splitlines()[0]) == (2, "the log is empty")


def test_a_log_at_level_0_is_explained_as_far_as_it_goes(tmp_path: Path) -> None:
    lines = [started(), failed(3)]
    said = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "trainer", "--detail"])
    answer = json.loads(said.stdout)
    assert answer["filter"]["summary"] == "no available node, 3 nodes do not meet"
    assert "names of refused nodes" in answer["detail"]["provenance"]["not_reported"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    log = str(a_log(tmp_path, started()))
    for wrong, text in (
        ([str(tmp_path / "nothing"), "--explain", "x"], "No such file"),
        ([log], "where is Kafka?"),
        ([log, "--explain", "x", "--nodes", log], "kubectl get nodes -o json"),
        ([log, "--explain", "x", "--timezone", "Mars/Base"], "no such zone"),
        ([log, "--explain", "x", "--checkpoint", log], "--checkpoint goes with"),
        ([log, "--explain", "x", "--follow"], "leave out --follow"),
        ([str(tmp_path), "--explain", "x"], "Is a directory"),
    ):
        said = CliRunner().invoke(app, ["hami-log", *wrong], env={"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": ""})
        assert (said.exit_code, text in said.stderr) == (2, True), said.output
