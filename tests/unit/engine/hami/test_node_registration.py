"""All devices of a node, NVIDIA's before those of other vendors."""

import json
from datetime import datetime

import pytest

from engine.hami.node_registration import decode_pair_scores, list_cordoned_devices, read_node, read_vendor
from engine.hami.registration import Malformed, Registration
from engine.hami.vendor_catalog import BIREN, VASTAI, build_ascend, build_custom_vendor
from engine.hami.vendors import NVIDIA, Vendor

VENDORS = (NVIDIA, build_ascend("Ascend910B3"))


def a_device(uuid: str, model: str) -> dict[str, object]:
    return {"id": uuid, "count": 10, "devmem": 65536, "devcore": 100, "type": model, "health": True}


NVIDIA_TEXT = json.dumps([a_device("GPU-0", "NVIDIA A100"), a_device("GPU-1", "other")])
ASCEND_TEXT = json.dumps([a_device("NPU-0", "Ascend910B3"), a_device("NPU-1", "Ascend910B3")])
KEYS = ("hami.io/node-nvidia-register", "hami.io/node-register-Ascend910B3")


def list_devices(*texts: str | None) -> list[tuple[str, int]] | None:
    annotations = {key: text for key, text in zip(KEYS, texts, strict=True) if text is not None}
    devices = read_node({"metadata": {"name": "n1", "annotations": annotations}}, VENDORS).combine_devices(VENDORS)
    if devices is None:
        return None
    return list(zip((device.uuid for device in devices.registration.devices), devices.vendors, strict=True))


def test_every_device_has_the_code_of_its_vendor() -> None:
    # Codes are positions in the table, from 1; a device of another model in NVIDIA's annotation has none.
    nvidia, ascend = [("GPU-0", 1), ("GPU-1", 0)], [("NPU-0", 2), ("NPU-1", 2)]
    assert list_devices(NVIDIA_TEXT, ASCEND_TEXT) == nvidia + ascend
    assert list_devices(NVIDIA_TEXT, None) == nvidia
    assert list_devices(None, ASCEND_TEXT) == ascend
    assert list_devices(None, None) is None


def test_an_unreadable_annotation_hides_only_its_own_devices() -> None:
    assert list_devices("{", ASCEND_TEXT) == [("NPU-0", 2), ("NPU-1", 2)]
    assert list_devices(NVIDIA_TEXT, "{") == [("GPU-0", 1), ("GPU-1", 0)]
    annotations = {KEYS[0]: "{", KEYS[1]: ASCEND_TEXT}
    assert isinstance(read_node({"metadata": {"annotations": annotations}}, VENDORS).problem, Malformed)


def test_pair_scores_that_are_no_text_are_malformed() -> None:
    assert isinstance(decode_pair_scores(3), Malformed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", {}),
        ('[{"uuid":"a","score":{"b":40,"c":null}},{"uuid":"b"}]', {"a": {"b": 40}, "b": {}}),
        ("{", Malformed),
        ('[{"uuid":"a","score":3}]', Malformed),
        ('[{"uuid":"a","score":{"b":"40"}}]', Malformed),
    ],
)
def test_pair_scores_without_a_number_are_left_out(text: str, expected: object) -> None:
    scores = decode_pair_scores(text)
    assert isinstance(scores, Malformed) if expected is Malformed else scores == expected


@pytest.mark.parametrize(
    ("text", "uuids"),
    [("GPU-1", {"GPU-1"}), ("GPU-1, GPU-2 ", {"GPU-1", "GPU-2"}), (None, set()), (3, set())],
)
def test_cordoned_devices_are_separated_by_commas(text: object, uuids: set[str]) -> None:
    assert list_cordoned_devices({"hami.io/device-cordon": text}) == uuids
    assert list_cordoned_devices({}) == set()


@pytest.mark.parametrize(("vendor", "cores"), [(BIREN, 100), (VASTAI, 100), (build_ascend("Ascend910B3"), 20)])
def test_devices_of_biren_and_vastai_have_100_cores_whatever_their_node_lists(vendor: Vendor, cores: int) -> None:
    text = json.dumps([{"id": "D-0", "count": 1, "devcore": 20, "type": "T", "health": True}])
    node = {"metadata": {"annotations": {vendor.node.register: text}}}
    registration = read_vendor(node, vendor)
    assert isinstance(registration, Registration)
    assert [device.cores for device in registration.devices] == [cores]


def test_a_vendor_that_left_the_request_open_for_a_minute_is_left_out() -> None:
    vendor = build_custom_vendor("T")
    annotations = {
        vendor.node.register: "D-0,4,1024,100,T,0,true:",
        vendor.node.handshake: "Requesting_2026-11-21 03:00:00",
    }
    node = {"metadata": {"annotations": annotations}, "status": {"allocatable": {}}}
    for second, is_listed in [(59, True), (60, False)]:
        now = datetime(2026, 11, 21, 3, second // 60, second % 60)  # noqa: DTZ001 - a handshake's time names no zone
        assert (read_vendor(node, vendor, now) is not None) is is_listed
