import json
from pathlib import Path

from typer.testing import CliRunner

from ingest.__main__ import app
from tests.support.builders.hami_lines import failed, fit, requested, started, unfit

CASES = Path(__file__).parent
PROPOSAL = CASES / "readers" / "hami" / "cases" / "scheduler-event-proposal.log"
TAGS = CASES / "readers" / "kai" / "cases" / "seed002-debug-tags.log"
RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "logs" / "038.log"


def a_log(folder: Path, *texts: bytes) -> Path:
    path = folder / "hami.log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


def test_one_pod_is_explained_straight_from_its_log(tmp_path: Path) -> None:
    log = a_log(tmp_path, started(), requested(1), unfit("node1", "1/2 CardCordoned, 1/2 CardNotHealth"), failed(1))
    result = CliRunner().invoke(app, ["hami-log", str(log), "--explain", "trainer"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["filter"]["summary"] == "no available node, 1 nodes do not meet"
    assert answer["filter"]["nodes"][0]["containers"][0]["reason"] == "1/2 CardCordoned, 1/2 CardNotHealth"
    assert "4 lines: 4 used" in result.stderr


def test_the_latest_attempt_is_the_one_that_is_explained(tmp_path: Path) -> None:
    log = a_log(tmp_path, started(), failed(1), started(at=60), fit("node1", "3.5", at=60.1))
    result = CliRunner().invoke(app, ["hami-log", str(log), "--explain", "ml/trainer", "--detail"])
    assert json.loads(result.stdout)["detail"]["fit_nodes"] == 1


def test_a_pod_that_the_log_does_not_know_is_a_mistake_with_what_was_read(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, b"other text")), "--explain", "trainer"])
    assert result.exit_code == 2
    assert "the log names no pod at all, and has no line that this scheduler prints about a decision" in result.stderr
    assert "1 unknown" in result.stderr


def test_a_name_that_is_wrong_is_answered_with_those_that_the_log_has(tmp_path: Path) -> None:
    pods = [f"ml/other-{number}" for number in range(20)] + ["ml/trainer-0"]
    lines = [failed(1, pod, at=at) for at, pod in enumerate(pods)]
    result = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "ml/trainer"])
    assert result.exit_code == 2
    first = result.stderr.splitlines()[0]
    assert first.startswith("the log has no attempt of a pod ml/trainer; it has attempts of ml/trainer-0, ")
    assert first.endswith(" and 13 more")


def test_one_name_in_two_namespaces_says_so(tmp_path: Path) -> None:
    lines = [failed(1), failed(2, "dev/trainer", at=9)]
    result = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "trainer"])
    assert json.loads(result.stdout)["filter"]["summary"] == "no available node, 2 nodes do not meet"
    assert "dev/trainer, ml/trainer: the latest attempt, which follows, is of dev/trainer" in result.stderr


def test_an_empty_log_is_reported(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    result = CliRunner().invoke(app, ["hami-log", str(tmp_path / "empty.log"), "--explain", "x"])
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, "the log is empty")


def test_the_devices_of_every_node_are_explained_with_their_numbers() -> None:
    pod = "llm/deepseek-5996b8569d-kgwgx"
    result = CliRunner().invoke(app, ["hami-log", str(PROPOSAL), "--explain", pod, "--detail"])
    devices = json.loads(result.stdout)["devices"]
    assert len(devices) == 22
    [device] = [device for device in devices if device["uuid"] == "GPU-c12ea36b-23c1-400a-a18f-df9d25b956f0"]
    assert (device["node"], device["verdict"]) == ("node2", "CardInsufficientMemory")
    assert (device["memory_total_mib"], device["memory_used_mib"]) == (45912, 41645)
    assert (device["memory_requested_mib"], device["device_index"]) == (20480, 0)


def test_without_findings_the_answer_is_the_proposals(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, started(), failed(1))), "--explain", "trainer"])
    assert list(json.loads(result.stdout)) == ["status", "filter", "bind"]


def test_what_contradicts_a_placement_is_explained_with_the_lines_that_prove_it() -> None:
    result = CliRunner().invoke(app, ["kai-log", str(TAGS), "--explain", "infer-0"])
    [finding] = json.loads(result.stdout)["findings"]
    assert (finding["finding"], finding["node"], finding["device"]) == ("ReleasingMemoryCounted", "gpu-0", "grp-0")
    assert finding["numbers"]["memory_releasing_mib"] == 30000
    assert finding["evidence"][0].startswith("[RESOURCE_CHECK] Node <gpu-0>: GPU <grp-0> Total=40900")


def test_an_overcommitment_by_the_logs_own_numbers_is_explained(tmp_path: Path) -> None:
    log = tmp_path / "kai.log"
    log.write_bytes(TAGS.read_bytes().replace(b"isPipelineOnly=true", b"isPipelineOnly=false"))
    result = CliRunner().invoke(app, ["kai-log", str(log), "--explain", "infer-0"])
    findings = {finding["finding"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert set(findings) == {"ReleasingMemoryCounted", "Overcommitted"}
    numbers = {"memory_total_mib": 40900, "memory_used_mib": 35000, "memory_taken_mib": 30000}
    assert findings["Overcommitted"]["numbers"] == numbers
    assert findings["Overcommitted"]["evidence"] == ["gpu-0 gave grp-0 to team-a/infer-0"]


def test_a_log_at_level_0_is_explained_as_far_as_it_goes(tmp_path: Path) -> None:
    lines = [started(), failed(3)]
    result = CliRunner().invoke(app, ["hami-log", str(a_log(tmp_path, *lines)), "--explain", "trainer", "--detail"])
    answer = json.loads(result.stdout)
    assert answer["filter"]["summary"] == "no available node, 3 nodes do not meet"
    assert "names of refused nodes" in answer["detail"]["reports"][0]["not_reported"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    log = str(a_log(tmp_path, started()))
    for wrong, text in (
        ([str(tmp_path / "nothing"), "--explain", "x"], "No such file"),
        ([log], "no Kafka: give --kafka HOST:PORT"),
        ([log, "--explain", "x", "--nodes", log], "kubectl get nodes -o json"),
        ([log, "--explain", "x", "--timezone", "Mars/Base"], "no such zone"),
        ([log, "--explain", "x", "--checkpoint", log], "--checkpoint goes with"),
        ([log, "--explain", "x", "--follow"], "leave out --follow"),
        ([str(tmp_path), "--explain", "x"], "Is a directory"),
    ):
        result = CliRunner().invoke(app, ["hami-log", *wrong], env={"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": ""})
        assert (result.exit_code, text in result.stderr) == (2, True), result.output
