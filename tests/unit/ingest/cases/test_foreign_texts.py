"""Texts that are neither logs nor objects: each is named with what to give instead."""

import zipfile
from pathlib import Path

import pytest

from ingest.cases.read_case import read_case
from ingest.errors import MistakeError

PODS = "NAME      READY   STATUS    RESTARTS   AGE\ntrain-0   0/1     Pending   0          12m\n"
NODES = "NAME    STATUS   ROLES    AGE   VERSION\nnode1   Ready    <none>   3d    v1.36.0\n"
USE = "Thu Nov 26 10:00:00 2026\n| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n"
WEBHOOK = 'failed calling webhook "share.example.com": failed to call webhook: Post "https://s.ns.svc:443/w"'
SCALER = "I0312 10:00:01.000000       1 static_autoscaler.go:299] Calculating unneeded nodes\n"
GPUSHARE = "W0806 08:07:11.851872       1 allocate.go:180] invalid allocation requst: request GPU memory 3 can't be "
PLUGIN = (
    "I0312 10:00:00.000000       7 main.go:157] Starting FS watcher.\n"
    "I0312 10:00:00.100000       7 main.go:166] Start working on node edge-4\n"
    "E0312 10:00:00.200000       7 factory.go:115] Failed to initialize NVML: ERROR_DRIVER_NOT_LOADED\n"
)


RECLAIM = (
    "I0312 10:00:00.000000       1 capacity.go:255] Queue <labs> can not reclaim, deserved <cpu 4000.00>, "
    "allocated <cpu 9000.00, pods 5.00>, share <2>\n"
)
UNREGISTERED = (
    "W0312 10:00:00.000000       1 device_info.go:97] Failed to get node devices. nodeName edge-4, deviceType "
    "Ascend310P, error annos not found hami.io/node-register-Ascend310P\n"
)


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
        (PODS.partition("\n")[2].encode(), "the table of `kubectl get pods`"),
        (f"{WEBHOOK}: x509: certificate has expired or is not yet valid\n".encode(), "the caBundle of the Mutating"),
        (f"{WEBHOOK}: dial tcp 10.1.2.3:443: connect: connection refused\n".encode(), "(connect: connection refused)"),
        (SCALER.encode(), "the cluster autoscaler, which places no pods"),
        (f"{GPUSHARE}satisfied.\n".encode(), "the kubelet asked it for 3 units of GPU memory"),
        (PLUGIN.encode(), "the log of a device plugin"),
        (PLUGIN.encode(), "It says: Failed to initialize NVML: ERROR_DRIVER_NOT_LOADED"),
        (RECLAIM.encode(), "queue labs takes nothing back from other queues"),
        (RECLAIM.encode(), "It deserves cpu 4000.00, and holds cpu 9000.00, pods 5.00."),
        (UNREGISTERED.encode(), "node edge-4 lacks the annotation hami.io/node-register-Ascend310P"),
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
