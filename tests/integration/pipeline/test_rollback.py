"""An upgrade and the way back, end to end: processes of a former version, from its own tree, on the stores of this one.

The former tree comes from git. A clone without that commit (``--depth``) skips the test; that this version reads what
former ones wrote is shown without it, by the golden records and by ``test_upgrade.py``.
"""

import os
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from dev.demo.processes import Processes, find_free_ports
from schemas.index_family import MAPPING_VERSION
from schemas.indices import ATTEMPTS
from schemas.topics import DEAD_LETTERS
from tests.support.builders.attempts import an_attempt, build_common
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import eventually

ROOT: Final = Path(__file__).parents[3]
FORMER: Final = "ba569765c0caa921f87e69c1aff9b814176ddfd5"
"""The last commit of the mapping version before this one; once there are releases, the one before."""
BEGAN: Final = datetime(2026, 4, 1, 12, tzinfo=UTC)
NAMESPACE, POD = "rolled-back", "waiting"
REFUSED: Final = {"node1": [["CardInsufficientMemory"] * 2]}


@pytest.fixture(scope="module")
def former_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the former version, as git has it."""
    archive = subprocess.run(["git", "archive", FORMER], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"needs the commit {FORMER}, which this clone does not have (git fetch --unshallow)")
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture
def former(running: Pipeline, former_tree: Path, tmp_path: Path) -> Iterator[Pipeline]:
    """A pipeline of the former version on the same servers; nothing of it runs yet."""
    # Before the folder of this project, in which the tests run and which the environment has installed.
    of_tree = {"PYTHONPATH": str(former_tree), "PYTHONSAFEPATH": "1"}
    settings = {name: value for name, value in running.processes.environment.items() if name not in os.environ}
    with Processes(tmp_path / "former", settings | of_tree) as processes:
        yield Pipeline(running.servers, processes, running.port, running.index_port)


def read_mapping_version(pipeline: Pipeline) -> int:
    url = f"{pipeline.servers.opensearch_url}/{ATTEMPTS.name(BEGAN)}/_mapping"
    (mapping,) = httpx.get(url, timeout=30).json().values()
    version: int = mapping["mappings"]["_meta"]["schedulerlog_mapping_version"]
    return version


def read_refusal_of_index_writer(pipeline: Pipeline) -> str:
    """Start an index writer that has to end by itself, and return what it logged."""
    pipeline.start_index()
    eventually(lambda: not pipeline.processes.is_running("index"), "the index writer runs on")
    assert pipeline.processes.release_if_ended("index")
    return pipeline.processes.log("index").read_text()


def replace_version(before: Pipeline, after: Pipeline) -> None:
    """Replace the processes of a version by those of another, as docs/operations.md says."""
    after.processes.run("provision", "pipeline", "provision")
    before.stop_all()
    after.start_all()


def pass_attempt(pipeline: Pipeline, number: int) -> str:
    """Pass the pod's attempt of that number, refused as those before it; return its id when it is in the index."""
    attempt_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{number}").hex
    times = {"started_at": BEGAN + timedelta(minutes=number), "attempt_id": attempt_id}
    pipeline.send(an_attempt(REFUSED, **build_common(POD, NAMESPACE) | times))
    eventually(lambda: attempt_id in pipeline.get_attempts(NAMESPACE), lambda: f"{pipeline.get_attempts(NAMESPACE)}")
    return attempt_id


def ask_api(pipeline: Pipeline) -> dict[str, Any]:
    """Ask an API of the version about the pod's latest attempt."""
    port = find_free_ports("api")["api"]
    pipeline.processes.start("api", "api", "serve", "--listen", port)
    try:
        pipeline.processes.wait_ready("api", f"http://127.0.0.1:{port}/readyz")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}/schedulerlog"
        answer = httpx.get(f"http://127.0.0.1:{port}{path}", params={"detail": "full"}, timeout=30)
        detail: dict[str, Any] = answer.raise_for_status().json()["detail"]
        return detail
    finally:
        pipeline.processes.stop("api")


def start_others(pipeline: Pipeline) -> None:
    """Start placements and alerts, which are ready when they have read the state that the other version left."""
    for name in ("placements", "alerts"):
        port = find_free_ports(name)[name]
        pipeline.processes.start(name, "pipeline", name, "--metrics-address", port)
        replace(pipeline, port=int(port)).wait_ready(name)
        pipeline.processes.stop(name)


def test_a_version_continues_where_the_other_stopped_in_both_directions(running: Pipeline, former: Pipeline) -> None:
    attempts = [pass_attempt(running, 1)]
    start_others(running)
    assert read_mapping_version(running) == MAPPING_VERSION
    running.processes.stop("index")
    refusal = f"has mapping version {MAPPING_VERSION}, newer than {MAPPING_VERSION - 1} of this process"
    assert refusal in read_refusal_of_index_writer(former)

    replace_version(running, former)
    assert read_mapping_version(running) == MAPPING_VERSION - 1
    assert ask_api(former)["attempt_id"] == attempts[0]
    attempts.append(pass_attempt(former, 2))
    start_others(former)

    former.processes.stop("index")
    refusal = f"has mapping version {MAPPING_VERSION - 1}, not {MAPPING_VERSION}: run `schedulerlog pipeline provision`"
    assert refusal in read_refusal_of_index_writer(running)
    replace_version(former, running)
    assert read_mapping_version(running) == MAPPING_VERSION
    assert ask_api(running)["attempt_id"] == attempts[1]
    attempts.append(pass_attempt(running, 3))
    start_others(running)
    running.settle()
    documents = running.get_attempts(NAMESPACE)
    # Three attempts with the same verdicts are one episode, whichever version wrote the pod's history.
    assert {number: documents[number]["episode"] for number in attempts} == dict.fromkeys(attempts, attempts[0])
    assert documents.keys() == set(attempts)
    summaries = [documents[number].get("repeated") or documents[number]["summary"] for number in attempts]
    assert [summary["attempts"] for summary in summaries] == [1, 2, 3]
    assert running.read_topic(DEAD_LETTERS.name) == []
