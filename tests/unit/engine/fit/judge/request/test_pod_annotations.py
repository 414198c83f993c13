"""Annotations of a pod that are published with its attempts."""

from engine.fit.judge.request.pod_annotations import select_constraints
from engine.hami.vendor_catalog import HYGON
from engine.hami.vendors import NVIDIA


def test_those_that_constrain_devices_are_kept_word_for_word() -> None:
    constraints = {
        "nvidia.com/use-gputype": "A100, A30",
        "nvidia.com/nouse-gpuuuid": "GPU-1",
        "hami.io/gpu-scheduler-policy": "mutex",
        "hygon.com/use-dcutype": "Z100",
    }
    others = {"team": "llm", "nvidia.com/use-gpuuuid": 7, "hami.io/vgpu-node": "n1"}
    assert select_constraints(constraints | others, (NVIDIA, HYGON)) == constraints
    assert "hygon.com/use-dcutype" not in (select_constraints(constraints, (NVIDIA,)) or {})


def test_too_long_ones_are_not_known_rather_than_cut() -> None:
    assert select_constraints({"nvidia.com/use-gpuuuid": "x" * 4096}, (NVIDIA,)) == {
        "nvidia.com/use-gpuuuid": "x" * 4096
    }
    assert select_constraints({"nvidia.com/use-gpuuuid": "x" * 4097}, (NVIDIA,)) is None
