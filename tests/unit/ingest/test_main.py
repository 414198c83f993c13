from pathlib import Path

from typer.testing import CliRunner

from ingest.__main__ import app
from tests.support.builders.hami_lines import write_start


def a_log(folder: Path, *texts: bytes) -> Path:
    path = folder / "hami.log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return path


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    log = str(a_log(tmp_path, write_start()))
    for arguments, text in (
        ([], "what is to be read? Give files"),
        ([log], "no Kafka: give --kafka HOST:PORT"),
        ([log], "or explain the log itself: schedulerlog explain LOG"),
        ([log, "--nodes", log], "kubectl get nodes -o json"),
        ([log, "--timezone", "Mars/Base"], "no such zone"),
        ([log, log, "--checkpoint", str(tmp_path / "position")], "--checkpoint goes with"),
        (["-", "--checkpoint", str(tmp_path / "position")], "--checkpoint goes with"),
    ):
        result = CliRunner().invoke(app, ["hami-log", *arguments], env={"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": ""})
        assert (result.exit_code, text in result.stderr) == (2, True), (arguments, result.output)
