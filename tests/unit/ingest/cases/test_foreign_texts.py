"""Texts that are neither logs nor objects: each is named with what to give instead."""

import zipfile
from pathlib import Path

import pytest

from ingest.cases.read_case import read_case
from ingest.errors import MistakeError

PODS = "NAME      READY   STATUS    RESTARTS   AGE\ntrain-0   0/1     Pending   0          12m\n"
NODES = "NAME    STATUS   ROLES    AGE   VERSION\nnode1   Ready    <none>   3d    v1.36.0\n"
USE = "Thu Nov 26 10:00:00 2026\n| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n"


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "It is a picture: copy the text itself into a file."),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "It is a picture"),
        (b"%PDF-1.7\n", "It is a PDF"),
        (b"<!DOCTYPE html>\n<html><body>I1126</body></html>\n", "It is a web page: save the raw text."),
        (PODS.encode(), "`kubectl get pods`, which has no reasons: give the objects, `kubectl get pods,nodes,events"),
        (b"NAMESPACE   " + PODS.encode(), "the table of `kubectl get pods`"),
        (NODES.encode(), "the table of `kubectl get nodes`"),
        (USE.encode(), "schedulers count what pods have requested"),
        (b"Dear all,\nmy pod waits.\n", "Is it the log of the container vgpu-scheduler-extender"),
    ],
)
def test_a_text_that_is_no_log_is_named_with_what_to_give(tmp_path: Path, content: bytes, advice: str) -> None:
    (tmp_path / "pasted").write_bytes(content)
    with pytest.raises(MistakeError) as refused:
        read_case([tmp_path / "pasted"])
    assert advice in str(refused.value)


def test_a_zip_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("hami.log", "I1126 10:00:00.000000 1 score.go:1] x\n" * 100)
    with pytest.raises(MistakeError, match="It is a zip archive: unpack it and name the folder"):
        read_case([tmp_path / "logs.zip"])
