"""Texts in the words of the vendor that a pod asks for."""

from typing import Any

import orjson
import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, SchedulerState
from engine.diagnosis.vendor_words import find_requested_vendor, is_of_kai, write_for_kai, write_for_vendor
from engine.hami.vendor_catalog import build_ascend
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import Request
from schemas.reasons import read_catalogue
from tests.support.builders.attempts import STARTED
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.events import a_summary
from tests.support.builders.simulations import simulate

CHIP = "Ascend910B4"


def a_request(vendor: str) -> Request:
    return Request(
        container="c", init=False, vendor=vendor, count=1, memory_mib=1, memory_percent=None, cores_percent=0
    )


def test_the_vendor_is_that_of_all_requests() -> None:
    assert find_requested_vendor([a_request("NVIDIA")]) is None
    assert find_requested_vendor([a_request("NVIDIA"), a_request("DCU")]) is None
    vendor = find_requested_vendor([a_request("DCU")])
    assert vendor is not None
    assert vendor.resources.memory == "hygon.com/dcumem"
    assert find_requested_vendor([a_request(CHIP)]) == build_ascend(CHIP)


@pytest.mark.parametrize("code", ["CardInsufficientMemory", "CardTimeSlicingExhausted", "node unregistered"])
def test_no_name_of_nvidia_is_left_in_texts_of_another_vendor(code: str) -> None:
    reason = read_catalogue()[code]
    text = InBothLanguages(
        en=f"{reason.en.likely_cause} {reason.en.remedy}", zh=f"{reason.zh.likely_cause} {reason.zh.remedy}"
    )
    written = write_for_vendor(text, build_ascend(CHIP))
    assert "nvidia" in text.en
    assert "nvidia" not in written.en + written.zh


@pytest.mark.parametrize("word", ["DCU", "AMD", "MLU", CHIP])
def test_the_memory_of_a_vendor_without_percentages_has_one_name(word: str) -> None:
    reason = read_catalogue()["CardInsufficientMemory"]
    vendor = find_requested_vendor([a_request(word)])
    assert vendor is not None
    written = write_for_vendor(InBothLanguages(en=reason.en.remedy, zh=reason.zh.remedy), vendor)
    assert (written.en + written.zh).count(f"`{vendor.resources.memory}`") == 2


@pytest.mark.parametrize(("word", "unit"), [("MLU", "256"), ("Mthreads", "512"), ("Metax-SGPU", "1,024")])
def test_memory_is_named_in_the_unit_of_the_vendors_resource(word: str, unit: str) -> None:
    """The units by which HAMi multiplies these amounts (docs/vendors.md: requests)."""
    reason = read_catalogue()["CardInsufficientMemory"]
    written = write_for_vendor(
        InBothLanguages(en=reason.en.remedy, zh=reason.zh.remedy), find_requested_vendor([a_request(word)])
    )
    assert f"(a device, in units of {unit} MiB)" in written.en
    assert f"以 {unit} MiB 为单位" in written.zh


@pytest.mark.parametrize("word", ["MLU", "kunlun", "Metax-GPU", "Mthreads", "GCU"])
def test_devices_that_no_annotation_registers_are_looked_up_in_the_nodes_capacity(word: str) -> None:
    """docs/vendors.md: the device plugins of these vendors offer numbers alone."""
    codes = ("NodeInsufficientDevice", "node unregistered", "CardNotHealth")
    reasons = [read_catalogue()[code] for code in codes]
    text = InBothLanguages(
        en=" ".join(f"{reason.en.likely_cause} {reason.en.remedy}" for reason in reasons),
        zh=" ".join(f"{reason.zh.likely_cause} {reason.zh.remedy}" for reason in reasons),
    )
    written = write_for_vendor(text, find_requested_vendor([a_request(word)]))
    assert "the list in `status.capacity`" in written.en
    assert "与 `status.capacity` 的列表" in written.zh
    for part in (written.en, written.zh):
        assert "annotation `status.capacity`" not in part
        assert "注解 `status.capacity`" not in part


def test_an_ascend_pod_is_advised_with_ascends_names() -> None:
    device = {"id": "A-0", "index": 0, "count": 4, "devmem": 32768, "devcore": 20, "type": CHIP, "health": True}
    node: dict[str, Any] = a_node("n1")
    node["metadata"]["annotations"] = {
        f"hami.io/node-register-{CHIP}": orjson.dumps([device]).decode(),
        f"hami.io/node-handshake-{CHIP}": "Requesting_2026-08-19 02:00:00",
    }
    for amounts in node["status"].values():
        amounts[f"huawei.com/{CHIP}"] = "4"
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {f"huawei.com/{CHIP}": 2}}
    answer = simulate(pod, node)
    # An open handshake of a file is a state: the node is registered, and has too few devices.
    assert answer["diagnosis"]["obstacle"]["code"] == "NodeInsufficientDevice"
    texts = answer["diagnosis"]["obstacle"]
    assert f"`huawei.com/{CHIP}`" in texts["likely_cause"]["en"]
    assert "nvidia" not in texts["likely_cause"]["en"] + texts["remedy"]["en"]


@pytest.mark.parametrize(
    ("scheduler", "reader", "is_kai"),
    [
        ("kai-scheduler", "", True),
        ("gpu-queue", "kai-log", True),
        ("gpu-queue", "", True),
        ("hami-scheduler", "", False),
    ],
)
def test_a_share_of_a_device_is_asked_of_kai_by_its_annotations(scheduler: str, reader: str, *, is_kai: bool) -> None:
    observed = SchedulerState("gpu-queue", Evidence("scheduler", "gpu-queue"), "KAI")
    attempt = a_summary(scheduler=scheduler).model_copy(update={"reader": reader})
    facts = DiagnosisFacts("c", "default", "pod", STARTED, attempt=attempt, schedulers=[observed])
    assert is_of_kai(facts) is is_kai
    reason = read_catalogue()["CardInsufficientMemory"]
    written = write_for_kai(InBothLanguages(en=reason.en.remedy, zh=reason.zh.remedy))
    # As KAI documents the annotations: MiB of a device, and its part.
    assert written.en.startswith("Lower `gpu-memory` (MiB a device) or `gpu-fraction`, ")
    assert "`gpu-memory`（每个设备 MiB）或 `gpu-fraction`" in written.zh
