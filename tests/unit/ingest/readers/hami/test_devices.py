import json

import pytest

from ingest.readers.hami.devices import DeviceInRegistration, parse_node_list, parse_registration

JSON_FORM = (
    '[{"id":"GPU-a","index":0,"count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100","numa":1,'
    '"health":true}]'
)
COLON_FORM = "GPU-a,10,32768,100,NVIDIA-Tesla V100,1,true:GPU-b,4,16384,100,NVIDIA A30,0,false,1,hami-core:"


def test_both_forms_of_a_registration_are_read() -> None:
    v100 = DeviceInRegistration("n1", "NVIDIA-Tesla V100", 32768, 100, 10, 1, device_index=0)
    assert dict(parse_registration("n1", JSON_FORM)) == {"GPU-a": v100}
    a30 = DeviceInRegistration("n1", "NVIDIA A30", 16384, 100, 4, 0, device_index=1, is_healthy=False)
    assert dict(parse_registration("n1", COLON_FORM)) == {"GPU-a": v100, "GPU-b": a30}


@pytest.mark.parametrize("text", ["", "[", "[3, null, {}]", "GPU-a,1,2", ":::", '[{"id":"","count":"x"}]'])
def test_a_text_that_is_not_a_registration_has_no_devices(text: str) -> None:
    assert dict(parse_registration("n1", text)) == {}


def test_a_node_list_gives_the_devices_of_its_nodes() -> None:
    node = {"metadata": {"name": "n1", "annotations": {"hami.io/node-nvidia-register": JSON_FORM, "other": "x"}}}
    assert set(parse_node_list(json.dumps({"kind": "List", "items": [node, {"metadata": None}]}).encode())) == {"GPU-a"}


@pytest.mark.parametrize("text", [b"", b"NAME STATUS", b"[]", b'{"items": 3}'])
def test_the_error_about_another_file_names_the_command_that_writes_a_node_list(text: bytes) -> None:
    with pytest.raises(ValueError, match="kubectl get nodes -o json"):
        parse_node_list(text)
