"""All devices of a node, NVIDIA's before those of other vendors."""

import json

from engine.hami.node_registration import decode_pair_scores, read_node
from engine.hami.registration import Malformed
from engine.hami.vendor_catalog import build_ascend
from engine.hami.vendors import NVIDIA

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
