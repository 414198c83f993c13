import json
from pathlib import Path

from typer.testing import CliRunner

from ingest.__main__ import app
from tests.unit.ingest.hami_lines import asked, failed, fit, started, unfit

RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "logs" / "038.log"


def a_log(folder: Path, *texts: bytes) -> Path:
    path = folder / "hami.log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


def test_one_pod_is_explained_straight_from_its_log(tmp_path: Path) -> None:
    log = a_log(tmp_path, started(), asked(1), unfit("node1", "1/2 CardCordoned, 1/2 CardNotHealth"), failed(1))
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
    assert "says nothing about a pod trainer" in said.stderr
    assert "1 unknown" in said.stderr


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    log = str(a_log(tmp_path, started()))
    for wrong, text in (
        ([str(tmp_path / "nothing"), "--explain", "x"], "No such file"),
        ([log], "where is Kafka?"),
        ([log, "--explain", "x", "--nodes", log], "kubectl get nodes -o json"),
        ([log, "--explain", "x", "--timezone", "Mars/Base"], "no such zone"),
        ([log, "--explain", "x", "--checkpoint", log], "--checkpoint goes with"),
    ):
        said = CliRunner().invoke(app, ["hami-log", *wrong], env={"SCHEDULERLOG_KAFKA": ""})
        assert (said.exit_code, text in said.stderr) == (2, True), said.output
