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
from pathlib import Path
from typing import TextIO

import pytest
import zstandard

from cli.command import app
from page.log_file import log_file
from tests.unit.cli.terminal.conftest import Run

HAMI = "tests/conformance/cases/logs/042.log"
KAI = "tests/unit/ingest/readers/kai/cases/v0.17-json-log.log"


def test_a_log_is_a_table_of_its_pods(run: Run) -> None:
    done = run("explain", HAMI)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"4 pods in {HAMI}: 0 placed, 4 not."
    rows = [line.split()[:2] for line in lines[3:7]]
    assert rows == [
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


def test_the_log_of_kai_is_recognised(run: Run) -> None:
    shown = json.loads(run("explain", KAI, "-o", "json").stdout)["items"]
    assert {item["diagnosis"]["name"] for item in shown} == {"infer-0", "train-0", "train-1", "train-2", "train-3"}
    assert run("explain", KAI, "-o", "name").stdout.splitlines()[0] == "pod/infer-0"


def test_a_log_that_ends_in_the_middle_answers_for_what_was_before(run: Run, tmp_path: Path) -> None:
    packed = gzip.compress(Path(HAMI).read_bytes() * 50, 0)
    (tmp_path / "torn.gz").write_bytes(packed[: len(packed) // 2])
    done = run("explain", str(tmp_path / "torn.gz"), COLUMNS="")
    assert "the answer is from the part before that" in done.stderr
    assert done.stdout.startswith("4 pods in ")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["README.md"], 2, "no line is from a scheduler that is known"),
        (["/does/not/exist"], 2, "No such file"),
        (["/dev/null"], 2, "/dev/null is empty"),
        (["docs"], 2, "docs is a directory: name a log in it"),
        ([HAMI, "trian-2002"], 3, "it has 4 pods, such as ml/train-2002"),
    ],
)
def test_what_a_log_does_not_have_is_named(run: Run, words: list[str], code: int, text: str) -> None:
    done = run("explain", *words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (code, True, ""), done.output


def test_a_pipe_that_brings_nothing_has_its_own_message() -> None:
    done = explained_from_pipe(b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"standard input is empty: the command before the pipe wrote nothing\n"


def test_the_answer_is_written_as_a_page_that_loads_and_runs_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "why.html"
    done = run("explain", HAMI, "--html", str(file))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"4 pods in {HAMI}: 0 placed, 4 not.")
    page = file.read_text("utf-8")
    assert "An annotation of the pod can&#39;t be read, so no node was judged: calcScore failed" in page
    assert all(name in page for name in ("ml/train-2002", "batch/job-small-2004", "What to do:", "4 pods, 0 of them"))
    assert re.findall(r"<script|<link|\bsrc=|\bon\w+=|https?://", page) == []
    assert run("explain", HAMI, "train-2002", "--html", str(file), "--lang", "zh").exit_code == 1
    assert "1 个 Pod，其中 0 个已放置。" in file.read_text("utf-8")


def test_names_that_would_do_harm_are_inert_on_the_page() -> None:
    row = {
        "attempts": 1, "node": "<img src=x onerror=alert(1)>", "started_at": "2026-11-23T00:00:00Z",
        "diagnosis": {
            "namespace": "<script>", "name": "\x1b[31mred\u202e", "state": "refused", "obstacle": None,
            "other_obstacles": [], "not_known": [], "sentence": {"en": "<b>`<i>`", "zh": ""},
        },
    }  # fmt: skip
    page = log_file("<log>", [row], "en")
    assert not re.search(r"<script>|<img|<log>|<i>|\x1b|\u202e", page)


def test_a_page_that_can_not_be_written_is_a_mistake_with_its_path(run: Run, tmp_path: Path) -> None:
    done = run("explain", HAMI, "--html", str(tmp_path / "absent" / "why.html"))
    assert done.exit_code == 2
    assert "absent/why.html can't be written: No such file or directory" in done.stderr


def explained_from_pipe(sent: bytes) -> subprocess.CompletedProcess[bytes]:
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
    return explained_from_pipe(Path(HAMI).read_bytes())


def test_standard_input_of_a_process_may_be_packed(unpacked: subprocess.CompletedProcess[bytes]) -> None:
    assert unpacked.stdout.startswith(b"4 pods in standard input: 0 placed, 4 not.\n")
    packed = explained_from_pipe(gzip.compress(Path(HAMI).read_bytes()))
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
    done = explained_from_pipe(gzip.compress(Path(HAMI).read_bytes() * 50, 0)[:-400])
    assert done.stdout.startswith(b"4 pods in ")
    assert done.stderr.startswith(b"standard input: Compressed file ended")
