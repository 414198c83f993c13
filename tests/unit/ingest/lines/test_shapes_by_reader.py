"""Each shape of a copy, read by each reader to its end: the same pods as of the log itself."""

from pathlib import Path
from typing import Final

import pytest

from ingest.cases.log_pods import LogPods
from ingest.cases.read_log import read_log
from tests.support.builders.klog_lines import write_klog
from tests.support.builders.log_shapes import SHAPES

_WORDS: Final = "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable."
LOGS: Final = {
    "HAMi": Path("tests/conformance/cases/logs/048.log").read_text("utf-8"),
    "KAI": Path("tests/unit/ingest/readers/kai/cases/seed002-debug-tags.log").read_text("utf-8"),
    "KAI, JSON": Path("tests/unit/ingest/readers/kai/cases/v0.17-json-log.log").read_text("utf-8"),
    "kube-scheduler": write_klog(
        f'"Unable to schedule pod; no fit; waiting" pod="ml/p" err="{_WORDS}"', "schedule_one.go"
    ).decode(),
    "Volcano": write_klog(
        "Task <ml/p> is Pending: 0/2 nodes are unavailable: 2 Insufficient cpu.", "job_info.go"
    ).decode(),
}
PODS: Final = {
    "HAMi": {"ml/infer-2301", "ml/job-2302", "ml/train-2303", "ml/train-2304"},
    "KAI": {"team-a/infer-0"},
    "KAI, JSON": {"team-a/infer-0", "team-a/train-0", "team-a/train-1", "team-a/train-2", "team-a/train-3"},
    "kube-scheduler": {"ml/p"},
    "Volcano": {"ml/p"},
}


def read_pods(file: Path) -> set[str]:
    pods = LogPods()
    read_log(file, pods.add)
    return set(pods.pods)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", LOGS)
def test_a_copy_has_the_pods_of_its_log(reader: str, shape: str, tmp_path: Path) -> None:
    (tmp_path / "copy.log").write_text(SHAPES[shape](LOGS[reader].splitlines()), "utf-8")
    assert read_pods(tmp_path / "copy.log") == PODS[reader]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("reader", LOGS)
def test_a_copy_in_another_encoding_has_the_pods_of_its_log(reader: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "copy.log").write_bytes(LOGS[reader].encode(encoding))
    assert read_pods(tmp_path / "copy.log") == PODS[reader]
