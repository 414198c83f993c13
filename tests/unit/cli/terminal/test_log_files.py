"""Logs of real schedulers (tests/conformance, tests/unit/ingest), whose pods and ends were read by hand."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import pytest
import zstandard

from cli.command import app
from page.log_file import render_log_file
from tests.support.builders.hami_lines import write_failure, write_fit, write_request, write_start, write_unfit
from tests.support.builders.kai_lines import print_lines
from tests.support.builders.kube_objects import a_container, a_device, a_node, a_pod
from tests.unit.cli.terminal.conftest import Run

HAMI = "tests/conformance/cases/logs/042.log"
KAI = "tests/unit/ingest/readers/kai/cases/v0.17-json-log.log"
PROPOSAL = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"
TAGS = Path("tests/unit/ingest/readers/kai/cases/seed002-debug-tags.log")


def a_log(folder: Path, *texts: bytes) -> str:
    path = folder / "hami.log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    return str(path)


def parse_full(run: Run, *words: str) -> dict[str, Any]:
    """Parse what the command prints with ``--full``."""
    done = run("explain", *words, "-o", "json", "--full")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_log_is_a_table_of_its_pods(run: Run) -> None:
    done = run("explain", HAMI)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"5 pods in {HAMI}: 0 placed, 5 not."
    rows = [line.split()[:2] for line in lines[3:8]]
    # HAMi read no request in the first one, and judged no node for it.
    assert rows == [
        ["ml/infer-small-2001", "not"],
        ["ml/train-2002", "refused"],
        ["default/train-small-2003", "refused"],
        ["batch/job-small-2004", "binding"],
        ["ml/notebook-small-2005", "refused"],
    ]


def test_one_pod_of_a_log_has_cause_and_remedy(run: Run) -> None:
    done = run("explain", HAMI, "train-2002")
    assert done.exit_code == 1
    assert done.stdout.startswith("An annotation of the pod can't be read, so no node was judged: calcScore failed\n")
    assert "Remedy, by you" in done.stdout
    assert "b57f04dc5ad07005b00747e10a9174f6" in done.stdout
    assert run("explain", HAMI, "ml/train-2002").stdout == done.stdout


def test_a_reclaim_in_kais_log_explains_the_winner_and_the_pod_that_it_evicts(tmp_path: Path, run: Run) -> None:
    log = tmp_path / "kai.log"
    look = "common/allocate.go: Looking for best node for task - Task: <{}>, init requested: <GPU: 2>."
    log.write_bytes(
        b"\n".join(
            print_lines(
                look.format("team-b/short-0"),
                "framework/session.go: Not enough resources for task: <team-b/short-0>, init requested: <GPU: 2>. Node"
                " <gpu-0> with limited resources, releasing: <Gpus: 0>, idle: <Gpus: 0>",
                "common/action.go: Statement eviction for task <team-a/long-0>, message: <Pod team-a/long-0 was"
                " preempted by workload team-b/short.> ",
                "framework/statement.go: Statement evicted task: <team-a/long-0> from node: <gpu-0>",
                look.format("team-b/short-0"),
                "framework/statement.go: Statement pipelined task: <team-b/short-0> to node: <gpu-0>, gpuGroup: <[]>",
                look.format("team-a/long-0"),
                "framework/session.go: Not enough resources for task: <team-a/long-0>, init requested: <GPU: 2>. Node"
                " <gpu-0> with limited resources, releasing: <Gpus: 0>, idle: <Gpus: 0>",
                "framework/statement.go: Evicting task: team-a/long-0",
                "framework/statement.go: Pipelining task: team-b/short-0",
            )
        )
    )
    winner, victim = (
        json.loads(run("explain", str(log), pod, "-o", "json").stdout)["obstacle"]
        for pod in ("team-b/short-0", "team-a/long-0")
    )
    assert (winner["code"], winner["nodes"]) == ("WaitsForVictims", ["gpu-0"])
    assert (victim["code"], victim["nodes"]) == ("ReclaimedByScheduler", ["gpu-0"])
    assert "for workload team-b/short of another queue (reclaim)" in victim["sentence"]["en"]


def test_the_log_of_kai_is_recognised(run: Run) -> None:
    items = json.loads(run("explain", KAI, "-o", "json").stdout)["items"]
    assert {item["diagnosis"]["name"] for item in items} == {"infer-0", "train-0", "train-1", "train-2", "train-3"}
    assert run("explain", KAI, "-o", "name").stdout.splitlines()[0] == "pod/infer-0"


def test_a_log_that_ends_in_the_middle_answers_for_what_was_before(run: Run, tmp_path: Path) -> None:
    packed = gzip.compress(Path(HAMI).read_bytes() * 50, 0)
    (tmp_path / "torn.gz").write_bytes(packed[: len(packed) // 2])
    done = run("explain", str(tmp_path / "torn.gz"), COLUMNS="")
    assert "the answer is from the part before that" in done.stderr
    assert done.stdout.startswith("5 pods in ")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["README.md"], 2, "no line is from a scheduler that is known"),
        (["/does/not/exist"], 2, "No such file"),
        (["/dev/null"], 2, "/dev/null is empty"),
        (["docs/decisions"], 2, "more files be read"),
        ([HAMI, "trian-2002"], 3, "it has 5 pods, such as ml/train-2002"),
    ],
)
def test_what_a_log_does_not_have_is_named(run: Run, words: list[str], code: int, text: str) -> None:
    done = run("explain", *words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (code, True, ""), done.output


def test_a_pipe_that_brings_nothing_has_its_own_message() -> None:
    done = explain_from_pipe(b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"standard input is empty: the command before the pipe wrote nothing\n"


def test_the_answer_is_written_as_a_page_that_loads_and_runs_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "why.html"
    done = run("explain", HAMI, "--html", str(file))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"5 pods in {HAMI}: 0 placed, 5 not.")
    page = file.read_text("utf-8")
    assert "An annotation of the pod can&#39;t be read, so no node was judged: calcScore failed" in page
    assert all(name in page for name in ("ml/train-2002", "batch/job-small-2004", "What to do:", "5 pods, 0 of them"))
    assert re.findall(r"<script|<link|\bsrc=|\bon\w+=|https?://", page) == []
    assert run("explain", HAMI, "train-2002", "--html", str(file), "--lang", "zh").exit_code == 1
    assert "1 个 Pod，其中 0 个已放置。" in file.read_text("utf-8")


def test_names_that_would_do_harm_are_inert_on_the_page() -> None:
    row = {
        "attempts": 1, "node": "<img src=x onerror=alert(1)>", "started_at": "2026-11-23T00:00:00Z",
        "diagnosis": {
            "namespace": "<script>", "name": "\x1b[31mred\u202e", "state": "refused", "obstacle": None,
            "other_obstacles": [], "not_known": [], "headline": {"en": "<b>`<i>`", "zh": ""},
        },
    }  # fmt: skip
    page = render_log_file("<log>", [row], "en")
    assert not re.search(r"<script>|<img|<log>|<i>|\x1b|\u202e", page)


def test_a_page_that_can_not_be_written_is_a_mistake_with_its_path(run: Run, tmp_path: Path) -> None:
    done = run("explain", HAMI, "--html", str(tmp_path / "absent" / "why.html"))
    assert done.exit_code == 2
    assert "absent/why.html can't be written: No such file or directory" in done.stderr


def explain_from_pipe(sent: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "schedulerlog", "explain", "-"]
    return subprocess.run(command, input=sent, capture_output=True, check=False)


def an_archive_without_times(content: bytes) -> bytes:
    return an_archive(content, dated=0)


def an_archive(content: bytes, dated: int = int(Path(HAMI).stat().st_mtime)) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        member = tarfile.TarInfo("hami.log")
        member.size, member.mtime = len(content), dated
        archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


@pytest.fixture(scope="module")
def unpacked() -> subprocess.CompletedProcess[bytes]:
    """The answer to the log as it is."""
    return explain_from_pipe(Path(HAMI).read_bytes())


def test_standard_input_of_a_process_may_be_packed(unpacked: subprocess.CompletedProcess[bytes]) -> None:
    assert unpacked.stdout.startswith(b"5 pods in standard input: 0 placed, 5 not.\n")
    packed = explain_from_pipe(gzip.compress(Path(HAMI).read_bytes()))
    assert (packed.returncode, packed.stdout, packed.stderr) == (0, unpacked.stdout, b"")


@contextmanager
def piped(sent: bytes) -> Iterator[TextIO]:
    """The end of a pipe at which this arrives."""

    def send() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(sent)

    reading, writing = os.pipe()
    sender = threading.Thread(target=send)
    sender.start()
    with os.fdopen(reading) as file:
        yield file
    sender.join()


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.compress, an_archive, an_archive_without_times]
)
def test_standard_input_may_be_packed_by_each_packer(
    unpacked: subprocess.CompletedProcess[bytes],
    pack: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with piped(pack(Path(HAMI).read_bytes())) as standard_input:
        # CliRunner's standard input is no file, and a process for each takes half a second to start.
        monkeypatch.setattr(sys, "stdin", standard_input)
        with pytest.raises(SystemExit) as ended:
            app(["explain", "-"])
    assert (ended.value.code, *capfdbinary.readouterr()) == (0, unpacked.stdout, b"")


def test_a_torn_archive_on_standard_input_is_named_as_what_it_is() -> None:
    done = explain_from_pipe(gzip.compress(Path(HAMI).read_bytes() * 50, 0)[:-400])
    assert done.stdout.startswith(b"5 pods in ")
    assert done.stderr.startswith(b"standard input: Compressed file ended")


def test_the_full_answer_is_the_apis(run: Run, tmp_path: Path) -> None:
    log = a_log(
        tmp_path,
        write_start(),
        write_request(1),
        write_unfit("node1", "1/2 CardCordoned, 1/2 CardNotHealth"),
        write_failure(1),
    )
    answer = parse_full(run, log, "trainer")
    assert answer["filter"]["summary"] == "no available node, 1 nodes do not meet"
    assert answer["filter"]["nodes"][0]["containers"][0]["reason"] == "1/2 CardCordoned, 1/2 CardNotHealth"
    assert list(answer) == ["status", "filter", "bind", "detail", "devices"], "there are no findings"


def test_the_full_answer_is_printed_as_yaml_too(run: Run, tmp_path: Path) -> None:
    done = run("explain", a_log(tmp_path, write_start(), write_failure(1)), "trainer", "-o", "yaml", "--full")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "status: failed")


@pytest.mark.parametrize("words", [["trainer"], ["-o", "json"], ["trainer", "-o", "wide"]])
def test_the_full_answer_is_about_one_pod_and_for_programs(run: Run, words: list[str]) -> None:
    done = run("explain", HAMI, *words, "--full")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "--full: name a pod and write -o json or -o yaml\n"


def test_the_latest_attempt_is_the_one_that_is_explained(run: Run, tmp_path: Path) -> None:
    log = a_log(
        tmp_path, write_start(), write_failure(1), write_start(seconds=60), write_fit("node1", "3.5", seconds=60.1)
    )
    assert parse_full(run, log, "ml/trainer")["detail"]["fit_nodes"] == 1


def test_an_attempt_without_a_verdict_is_unfinished(run: Run, tmp_path: Path) -> None:
    done = run("explain", a_log(tmp_path, write_start(), b"other text"), "trainer")
    assert done.exit_code == 1
    assert done.stdout.startswith("An attempt began at ")
    assert "is unfinished: the log ends at " in done.stdout


def test_a_log_without_attempts_is_a_mistake_with_the_lines_that_were_read(run: Run, tmp_path: Path) -> None:
    waits = b'I1121 03:06:23.217054 1 scheduler.go:369] "Scheduler is not leader yet, skipping ..."'
    done = run("explain", a_log(tmp_path, waits, b"other text"), "trainer")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "2 lines: 1 used, 0 noise, 1 unknown" in done.stderr
    assert "names no pod that a scheduler tried until 20" in done.stderr
    assert "This replica was not the leader (1 line, the last at 20" in done.stderr


def test_no_page_is_written_about_a_log_without_pods(run: Run, tmp_path: Path) -> None:
    waits = b'I1121 03:06:23.217054 1 scheduler.go:369] "Scheduler is not leader yet, skipping ..."'
    page = tmp_path / "why.html"
    done = run("explain", a_log(tmp_path, waits), "--html", str(page))
    assert (done.exit_code, done.stdout, page.exists()) == (3, "", False)
    assert "This replica was not the leader" in done.stderr


def test_a_misspelled_name_is_answered_with_similar_ones(run: Run, tmp_path: Path) -> None:
    pods = [f"ml/other-{number}" for number in range(20)] + ["ml/trainer-0"]
    log = a_log(tmp_path, *(write_failure(1, pod, seconds=seconds_later) for seconds_later, pod in enumerate(pods)))
    done = run("explain", log, "ml/trainer")
    assert done.exit_code == 3
    assert done.stderr.startswith(f"{log} has no attempt of a pod ml/trainer; it has 21 pods, such as ml/trainer-0, ")


def test_one_name_in_two_namespaces_has_to_be_written_in_full(run: Run, tmp_path: Path) -> None:
    log = a_log(tmp_path, write_failure(1), write_failure(2, "dev/trainer", seconds=9))
    done = run("explain", log, "trainer")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "name one of ml/trainer, dev/trainer" in done.stderr
    assert parse_full(run, log, "dev/trainer")["filter"]["summary"] == "no available node, 2 nodes do not meet"


def test_the_devices_of_every_node_are_explained_with_their_numbers(run: Run) -> None:
    devices = parse_full(run, PROPOSAL, "llm/deepseek-5996b8569d-kgwgx")["devices"]
    assert len(devices) == 22
    [device] = [device for device in devices if device["uuid"] == "GPU-c12ea36b-23c1-400a-a18f-df9d25b956f0"]
    assert (device["node"], device["verdict"]) == ("node2", "CardInsufficientMemory")
    assert (device["memory_total_mib"], device["memory_used_mib"]) == (45912, 41645)
    assert (device["memory_requested_mib"], device["device_index"]) == (20480, 0)


def test_what_contradicts_a_placement_is_explained_with_the_lines_that_prove_it(run: Run) -> None:
    [finding] = parse_full(run, str(TAGS), "infer-0")["findings"]
    assert (finding["finding"], finding["node"], finding["device"]) == ("ReleasingMemoryCounted", "gpu-0", "grp-0")
    assert finding["numbers"]["memory_releasing_mib"] == 30000
    assert finding["evidence"][0].startswith("[RESOURCE_CHECK] Node <gpu-0>: GPU <grp-0> Total=40900")


def test_an_overcommitment_by_the_logs_own_numbers_is_explained(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "kai.log"
    log.write_bytes(TAGS.read_bytes().replace(b"isPipelineOnly=true", b"isPipelineOnly=false"))
    findings = {finding["finding"]: finding for finding in parse_full(run, str(log), "infer-0")["findings"]}
    assert set(findings) == {"ReleasingMemoryCounted", "Overcommitted"}
    numbers = {"memory_total_mib": 40900, "memory_used_mib": 35000, "memory_taken_mib": 30000}
    assert findings["Overcommitted"]["numbers"] == numbers
    assert findings["Overcommitted"]["evidence"] == ["gpu-0 gave grp-0 to team-a/infer-0"]


def test_a_log_at_level_0_is_explained_as_far_as_it_goes(run: Run, tmp_path: Path) -> None:
    answer = parse_full(run, a_log(tmp_path, write_start(), write_failure(3)), "trainer")
    assert answer["filter"]["summary"] == "no available node, 3 nodes do not meet"
    assert "names of refused nodes" in answer["detail"]["reports"][0]["not_reported"]


def test_a_node_list_gives_what_the_log_leaves_out(run: Run, tmp_path: Path) -> None:
    metadata = {"name": "gpu-0", "labels": {"nvidia.com/gpu.memory": "40960", "kai.scheduler/node-pool": "t4"}}
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"items": [{"metadata": metadata}]}))
    lines = print_lines(
        "status_updater/default_status_updater.go: Updating pod group scheduling condition for team-a/pg to "
        "(UnschedulableOnNodePool,nodepool=a100)",
        "cache/cache.go: Creating bind request for task <team-a/infer-0> to node <gpu-0> gpuGroup: <[g]>, "
        "requires: <1> GPUs",
    )
    log = a_log(tmp_path, *lines)
    assert "findings" not in parse_full(run, log, "infer-0")
    [finding] = parse_full(run, log, "infer-0", "--nodes", str(nodes))["findings"]
    assert finding["finding"] == "OutsidePool"


def test_the_zone_of_the_log_moves_its_times(run: Run, tmp_path: Path) -> None:
    log = a_log(tmp_path, write_start(), write_failure(1))
    utc, shanghai = (
        datetime.fromisoformat(parse_full(run, log, "trainer", *words)["detail"]["started_at"])
        for words in ([], ["--timezone", "Asia/Shanghai"])
    )
    assert utc - shanghai == timedelta(hours=8)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nodes", HAMI], "kubectl get nodes -o json"),
        (["--nodes", "/does/not/exist"], "/does/not/exist: No such file"),
        (["--timezone", "Mars/Base"], "no such zone"),
    ],
)
def test_a_mistake_in_what_is_given_with_the_log_is_one_line(run: Run, words: list[str], text: str) -> None:
    done = run("explain", HAMI, *words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (2, True, ""), done.output


def test_the_answers_about_a_few_pods_are_shown_without_a_name(run: Run, tmp_path: Path) -> None:
    refusal = "0/2 nodes are available: 2 Insufficient amd.com/gpu."
    table = (
        "LAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"
        f"9s          Warning   FailedScheduling   pod/fit-0   {refusal}\n"
        f"8s          Warning   FailedScheduling   pod/fit-1   {refusal}\n"
        "7s          Warning   FailedScheduling   pod/fit-2   0/2 nodes are available: 2 node(s) were unschedulable.\n"
        '6s          Warning   FailedCreate       job/big     Error creating: pods "big-x" is forbidden: no room\n'
    )
    (tmp_path / "events.txt").write_text(table, "utf-8")
    result = run("explain", str(tmp_path / "events.txt"))
    assert result.output.count("Cause (ResourceShortOrMissing)") == 1
    assert result.output.count("Cause (NodeCordoned)") == 1
    assert result.output.count("Cause (OwnerRefused)") == 1
    assert "Why one of them: schedulerlog explain" in result.output


def test_the_page_of_a_log_has_nodes_counts_of_devices_and_scores(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "why.html"
    assert run("explain", "tests/conformance/cases/logs/048.log", "--html", str(file)).exit_code == 0
    parts = [" ".join(re.sub(r"<[^>]*>", " ", part).split()) for part in file.read_text("utf-8").split("<h2 ")]
    (refused,) = (part for part in parts if "ml/infer-2301" in part[:60])
    # As the log's own lines count them: CardInsufficientMemory on 1 of 1 and 3 of 4 devices.
    assert "Nodes 0 of 4 fit" in refused
    assert "1/1 CardInsufficientMemory Container c1 gpu-node-02" in refused
    assert "3/4 CardInsufficientMemory" in refused
    assert "not registered node unregistered cpu-node" in refused
    (chosen,) = (part for part in parts if "ml/train-2304" in part[:60])
    assert "The next best is gpu-node-01, 7.25 behind" in chosen
    assert "gpu-node-03 chosen 7.25" in chosen


OWNED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml, annotations: {nvidia.com/use-gputype: A40}}
spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: ml
  annotations: {nvidia.com/use-gputype: A40}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]
spec: {replicas: 1}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1-a
  namespace: ml
  annotations: {nvidia.com/use-gpu-type: H100, nvidia.com/use-gpuuuid: GPU-0000, hami.io/vgpu-time: "1"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, controller: true}]
spec:
  schedulerName: hami-scheduler
  containers: [{name: c, resources: {limits: {nvidia.com/gpu: "2", nvidia.com/gpumem: 20Ki}}}]
status: {phase: Pending}
"""


def test_a_pod_of_objects_has_what_helps_and_the_words_that_no_scheduler_reads(run: Run, tmp_path: Path) -> None:
    """Also where no object has a time, so that no time is known at which the cluster was read."""
    (tmp_path / "pod.yaml").write_text(OWNED)
    words = ("explain", str(tmp_path / "pod.yaml"), "examples/cluster.yaml", "ml/web-1-a")
    document = json.loads(run(*words, "-o", "json").stdout)
    (change,) = document["suggestions"]["items"]
    assert change["sentence"]["en"].startswith("Remove the annotation nvidia.com/use-gpuuuid (GPU-0000)")
    texts = [note["en"] for note in document["notes"]]
    expected = (
        "nvidia.com/use-gputype: A40 stands on Deployment/web itself",
        "20Ki of container c counts as 20,480 MiB",
        "No scheduler reads the annotation nvidia.com/use-gpu-type",
        "No device of the cluster has the UUID GPU-0000",
    )
    assert [text for text in texts if not any(part in text for part in expected)] == []
    assert len(texts) == len(expected)
    screen = run(*words, COLUMNS="").stdout
    assert all(text in screen for text in [*texts, change["sentence"]["en"]])
    # What helps comes before the reasons.
    assert screen.index("It would fit after any one of these") < screen.index("Cause (")


def test_a_placed_pod_names_its_devices_by_its_annotations(run: Run) -> None:
    """examples/cluster.yaml reserves four complete devices of node9 for the pod."""
    sentence = json.loads(run("explain", "examples/cluster.yaml", "batch/solver-1", "-o", "json").stdout)["sentence"]
    assert sentence["en"].startswith("The pod is on node node9, with GPU-c4f15529-a5f1-5d3e-a119-0bf3b9a8792d")
    assert sentence["en"].count("GPU-") == 4
    assert "(NVIDIA A40): 41,912 MiB and 100 % of the compute of each" in sentence["en"]


def write_sidecar_case(folder: Path) -> Path:
    """Write a pod whose sidecar and container ask for a device each, and a node with one device that takes one."""
    pod = a_pod("mesh", [a_container()], namespace="ml")
    pod["spec"] |= {
        "schedulerName": "hami-scheduler",
        "initContainers": [a_container("proxy") | {"restartPolicy": "Always"}],
    }
    objects = [a_node("n1", [a_device("GPU-0", count=1)]), pod | {"status": {"phase": "Pending"}}]
    file = folder / "objects.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return file


def test_the_release_of_hami_that_is_named_decides(run: Run, tmp_path: Path) -> None:
    """Since v2.11 a sidecar holds its devices next to the other containers."""
    file = str(write_sidecar_case(tmp_path))
    before, since = (run("explain", file, "mesh", "--hami-version", version).stdout for version in ("2.10", "v2.11.0"))
    assert run("explain", file, "mesh").stdout == before != since
    assert "CardTimeSlicingExhausted" in since
    wrong = run("explain", file, "mesh", "--hami-version", "new")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "'new' is no version, write 2.8 or v2.10.0" in wrong.stderr
