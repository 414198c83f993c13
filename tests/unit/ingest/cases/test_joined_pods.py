"""Files of one folder of which one does not name the pod: the other one does."""

from pathlib import Path

import pytest

from ingest.cases.answers import explain_pod
from ingest.cases.read_case import list_pod_names, read_case
from tests.support.builders.hami_lines import write_failure, write_request, write_start, write_unfit

ROWS = """Type     Reason            Age   From               Message
----     ------            ----  ----               -------
Warning  FailedScheduling  2m    default-scheduler  0/2 nodes are available: 2 Insufficient nvidia.com/gpu.
"""
SENTENCE = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.\n"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: ml}
spec:
  %s
  containers:
  - name: c
    resources: {limits: {nvidia.com/gpu: 4}, requests: {nvidia.com/gpu: 4}}
status: {phase: %s}
"""
WAITS = POD % ("train-0", "", "Pending")
RUNS = POD % ("other", "nodeName: n1", "Running")
LOG = b"\n".join(
    [write_start(), write_request(1), *(write_unfit(node, "1/1 CardInsufficientMemory") for node in ("n0", "n1")),
     write_failure(2)]
).decode()  # fmt: skip
JOINED = {
    "rows and a manifest": ((ROWS, WAITS), "ml/train-0", "ResourceShortOrMissing"),
    "a sentence and a manifest": ((SENTENCE, WAITS), "ml/train-0", "ResourceShortOrMissing"),
    "a manifest, of which one waits": ((ROWS, WAITS + "---" + RUNS), "ml/train-0", "ResourceShortOrMissing"),
    "rows and a log, which has the nodes": ((ROWS, LOG), "ml/trainer", "CardInsufficientMemory"),
}
SEPARATE = {
    "two pods that wait": (ROWS, WAITS + "---" + POD % ("train-1", "", "Pending")),
    "a log of two pods": (ROWS, LOG + "\n" + LOG.replace("trainer", "loader")),
    "two pods without a name": (
        ROWS + "\nthe other pod says:\n" + ROWS.replace("2 Insufficient", "1 Insufficient"),
        WAITS,
    ),
}


def write_folder(folder: Path, texts: tuple[str, ...]) -> Path:
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    return folder


@pytest.mark.parametrize("case", JOINED)
def test_a_text_without_a_name_is_about_the_only_pod_of_the_other_files(case: str, tmp_path: Path) -> None:
    texts, name, code = JOINED[case]
    read = read_case([write_folder(tmp_path, texts)])
    assert "default/pod" not in list_pod_names(read)
    diagnosis = explain_pod(read, name).diagnosis
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == code
    assert diagnosis.obstacle.numbers["of_nodes"] == 2


@pytest.mark.parametrize("case", SEPARATE)
def test_where_several_pods_may_be_meant_none_is(case: str, tmp_path: Path) -> None:
    assert "default/pod" in list_pod_names(read_case([write_folder(tmp_path, SEPARATE[case])]))


def test_a_pod_that_is_called_so_keeps_its_name(tmp_path: Path) -> None:
    called_pod = WAITS.replace("train-0", "pod").replace("namespace: ml", "namespace: default")
    names = set(list_pod_names(read_case([write_folder(tmp_path, (called_pod, WAITS))])))
    assert names == {"default/pod", "ml/train-0"}
