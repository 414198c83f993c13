"""A saved case answers as the live cluster did, with other names."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from cli.direct.reader import ObjectReader
from cli.direct.transport import DirectTransport
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import list_pod_names, read_case
from tests.support.fakes.logging_cluster import LOG, SCHEDULER, LoggingCluster
from tests.support.fakes.logging_cluster import POD as LOGGED_POD
from tests.support.fakes.small_cluster import DIAGNOSIS, SmallCluster

NAMES = {
    "train-0": "pod-1", "train": "job-1", "n0": "node-1", "n1": "node-2", "n2": "node-3", "ml": "namespace-1",
}  # fmt: skip
REPLACED = {"n0": "node-1", "n1": "node-2", "ml": "namespace-1", "trainer": "pod-1"}


@pytest.mark.parametrize("refused", [(), ("/api/v1/nodes", "/api/v1/pods")])
def test_the_answer_is_the_live_one_up_to_names(tmp_path: Path, refused: tuple[str, ...]) -> None:
    transport = DirectTransport(ObjectReader(SmallCluster(*refused).fetch), lambda: "ml", lambda _: None)
    live = transport.get(DIAGNOSIS)
    assert isinstance(live, dict)
    file = tmp_path / "case.tgz"
    assert transport.save(file) > 0
    case = read_case([file])
    (name,) = list_pod_names(case)
    assert name == "namespace-1/pod-1"
    saved = explain_pod(case, name).diagnosis.model_dump(mode="json")
    text = re.sub(r"\b(?:train-0|train|n0|n1|n2|ml)\b", lambda match: NAMES[match[0]], json.dumps(live))
    assert saved == json.loads(text)


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    transport = DirectTransport(ObjectReader(SmallCluster().fetch), lambda: "ml", lambda _: None)
    transport.get(DIAGNOSIS)
    file = tmp_path / "case.tgz"
    file.write_text("mine")
    with pytest.raises(FileExistsError):
        transport.save(file)
    assert file.read_text() == "mine"


def test_the_attempts_of_the_schedulers_log_are_answered_from_the_archive_too(tmp_path: Path) -> None:
    server = LoggingCluster(LOG, [LOGGED_POD, SCHEDULER])
    transport = DirectTransport(ObjectReader(server.fetch), lambda: "ml", lambda _: None)
    live = transport.get("/namespaces/ml/pods/trainer/diagnosis")
    assert isinstance(live, dict)
    assert len(live["differences"]) == 2
    transport.save(file := tmp_path / "case.tgz")
    case = read_case([file])
    saved = explain_pod(case, "namespace-1/pod-1").diagnosis.model_dump(mode="json")
    replaced = re.sub(r"\b(?:n0|n1|ml|trainer)\b", lambda match: REPLACED[match[0]], json.dumps(live))
    for part in ("sentence", "obstacle", "nodes", "differences"):
        assert saved[part] == json.loads(replaced)[part], part
    with tarfile.open(file) as archive:
        member = archive.extractfile("case/objects.json")
        assert member
        text = member.read().decode()
    # Devices and pods have UUIDs, which these of the test are not.
    assert not re.search(r"(?<!GPU-)(?<!uid-)\b(?:n0|n1|ml|trainer)\b", text)
