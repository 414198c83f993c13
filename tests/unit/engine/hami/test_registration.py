"""Register annotations, as HAMi's `DeviceInfo`, `MetaxSDeviceInfo` and `DecodeNodeDevices` read them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.hami.mig import MigProfile, Placement
from engine.hami.registration import (
    DEFAULT_MODE,
    Device,
    Malformed,
    Registration,
    decode_colon,
    decode_device,
    decode_extra,
    decode_json,
    decode_metax,
    decode_registration,
    encode_extra,
)
from engine.hami.vendors import Form

ANNOTATION = "hami.io/node-nvidia-register"
COLON = "GPU-0,10,40960,100,NVIDIA-A100,1,true:"
A100 = Device("GPU-0", slots=10, memory_mib=40960, cores=100, model="NVIDIA-A100", numa=1, is_healthy=True)
JSON = '[{"id":"GPU-0","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA-A100","numa":1,"health":true}]'


def test_a_device_in_json_has_all_of_its_fields() -> None:
    placements = [{"start": 0, "size": 4}, {"start": 4, "size": 4}]
    item = {
        "id": "GPU-3", "index": 3, "count": 7, "devmem": 40960, "devcore": 90, "type": "NVIDIA-A100", "numa": -1,
        "mode": "mig", "health": True, "devicevendor": "NVIDIA", "custominfo": {"NetworkID": 5},
        "migProfiles": [
            {"name": "3g.20gb", "memoryMB": 19968, "core": 42, "sliceCount": 3, "placements": placements},
            {"name": "7g.40gb"},
        ],
    }  # fmt: skip
    profiles = (
        MigProfile("3g.20gb", 19968, 42, 3, (Placement(0, 4), Placement(4, 4))),
        MigProfile("7g.40gb", 0, 0, 0, ()),
    )
    assert decode_json(json.dumps([item])) == (
        Device("GPU-3", 3, 7, 40960, 90, "NVIDIA-A100", -1, "mig", True, profiles, (("NetworkID", 5),)),
    )


@pytest.mark.parametrize("item", [{}, {"id": None, "index": None, "migProfiles": None, "health": None}])
def test_absent_and_null_fields_in_json_are_go_zero_values(item: dict[str, None]) -> None:
    assert decode_json(json.dumps([item])) == (Device("", 0, 0, 0, 0, "", 0, "", False, (), ()),)


def test_keys_in_json_are_compared_without_regard_to_case() -> None:
    assert decode_json('[{"ID":"GPU-0","DevMem":1,"HEALTH":true}]') == (Device("GPU-0", memory_mib=1, is_healthy=True),)


@pytest.mark.parametrize(
    ("field", "name", "low", "high"),
    [
        ("index", "index", 0, 2**64 - 1),
        ("count", "slots", -(2**31), 2**31 - 1),
        ("devmem", "memory_mib", -(2**31), 2**31 - 1),
        ("devcore", "cores", -(2**31), 2**31 - 1),
        ("numa", "numa", -(2**63), 2**63 - 1),
    ],
)
def test_numbers_in_json_have_the_width_of_the_field_in_go(field: str, name: str, low: int, high: int) -> None:
    for value in (low, high):
        assert getattr(decode_device({field: value}, "device 0"), name) == value
    for value in (low - 1, high + 1):
        if -(2**63) <= value < 2**64:
            problem = f"is {value}, write a number from {low} to {high}"
            assert decode_json(f'[{{"{field}":{value}}}]') == Malformed(ANNOTATION, f"device 0, field {field}", problem)


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [("memoryMB", -(2**31), 2**31 - 1), ("core", -(2**31), 2**31 - 1), ("sliceCount", 0, 2**32 - 1)],
)
def test_numbers_of_a_profile_have_the_width_of_the_field_in_go(field: str, low: int, high: int) -> None:
    profiles: list[dict[str, Any]] = [{"name": "1g.5gb"}, {field: low}]
    assert isinstance(decode_json(json.dumps([{"migProfiles": profiles}])), tuple)
    profiles[1] = {field: high + 1}
    assert decode_json(json.dumps([{}, {"migProfiles": profiles}])) == Malformed(
        ANNOTATION,
        f"device 1, field migProfiles[1], field {field}",
        f"is {high + 1}, write a number from {low} to {high}",
    )
    profiles[1] = {field: low - 1}
    assert isinstance(decode_json(json.dumps([{"migProfiles": profiles}])), Malformed)


@pytest.mark.parametrize("field", ["start", "size"])
def test_a_placement_has_unsigned_numbers(field: str) -> None:
    items = [{"migProfiles": [{"placements": [{"start": 0, "size": 1}, {field: -1}]}]}]
    location = f"device 0, field migProfiles[0], field placements[1], field {field}"
    problem = f"is -1, write a number from 0 to {2**32 - 1}"
    assert decode_json(json.dumps(items)) == Malformed(ANNOTATION, location, problem)
    items[0]["migProfiles"][0]["placements"] = [{field: 2**32 - 1}]
    assert isinstance(decode_json(json.dumps(items)), tuple)


@pytest.mark.parametrize(
    ("text", "location", "problem"),
    [
        ('[{},{"id":5}]', "device 1, field id", "is the number 5, write a string"),
        ('[{"type":[]}]', "device 0, field type", "is an array, write a string"),
        ('[{"mode":true}]', "device 0, field mode", "is a boolean, write a string"),
        ('[{"health":"true"}]', "device 0, field health", "is a string, write true or false"),
        ('[{"devmem":1.5}]', "device 0, field devmem", "is the number 1.5, write a whole number"),
        ('[{"migProfiles":{}}]', "device 0, field migProfiles", "is an object, write a JSON array"),
        ('[{"custominfo":[]}]', "device 0, field custominfo", "is an array, write a JSON object"),
        ("[{},null]", "device 1", "is null, write a JSON object"),
        ('["GPU-0"]', "device 0", "is a string, write a JSON object"),
        ("{}", "", "is an object, write a JSON array"),
    ],
)
def test_a_malformed_field_in_json_has_its_place_and_the_remedy(text: str, location: str, problem: str) -> None:
    assert decode_json(text) == Malformed(ANNOTATION, location, problem)


def test_a_text_that_is_not_json_is_malformed_at_a_character() -> None:
    malformed = decode_json("[{]")
    assert isinstance(malformed, Malformed)
    assert malformed.location.startswith("character ")
    assert malformed.problem.startswith("is not JSON (")


def test_a_malformed_annotation_reads_as_a_sentence() -> None:
    assert str(Malformed("a/b", "device 3, field devmem", "is 1")) == "annotation a/b, device 3, field devmem: is 1"
    assert str(Malformed("a/b", "", "lists no device")) == "annotation a/b: lists no device"


def test_only_numbers_and_texts_of_custom_fields_are_read() -> None:
    fields = {"NetworkID": 3, "Ratio": 0.5, "Zone": "a", "Links": {"b": 1}, "List": [1], "Null": None}
    device = decode_device({"custominfo": fields}, "device 0")
    assert device.extra == (("NetworkID", 3), ("Ratio", 0.5), ("Zone", "a"))


def test_custom_fields_in_records_have_tables_as_well() -> None:
    fields = {"NetworkID": 3, "Ratio": 0.5, "Zone": "a", "Links": {"b": 1}}
    extra = decode_extra(fields | {"List": [1], "Null": None})
    assert extra == (("NetworkID", 3), ("Ratio", 0.5), ("Zone", "a"), ("Links", (("b", 1),)))
    assert encode_extra(Device(extra=extra)) == fields


OLD = replace(A100, mode=DEFAULT_MODE)


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        (COLON, (OLD,)),
        # The separator after the last device may be missing, and empty parts are no devices.
        (f":{COLON}:GPU-1,10,40960,100,NVIDIA-A100,1,f", (OLD, replace(OLD, uuid="GPU-1", is_healthy=False))),
        ("GPU-0,10,40960,100,NVIDIA-A100,1,T,5,mig:", (replace(A100, index=5, mode="mig"),)),
        ("GPU-0,10,40960,100,NVIDIA-A100,1,1,0,:", (A100,)),
        (",-1,-2,+3,,-4,0:", (Device("", slots=-1, memory_mib=-2, cores=3, numa=-4, mode="hami-core"),)),
        (":", ()),
    ],
)
def test_the_old_form_has_seven_or_nine_fields(text: str, devices: tuple[Device, ...]) -> None:
    assert decode_colon(text) == devices


@pytest.mark.parametrize(
    ("position", "field", "low", "high"),
    [
        (1, "count", -(2**31), 2**31 - 1),
        (2, "memory", -(2**31), 2**31 - 1),
        (3, "cores", -(2**31), 2**31 - 1),
        (5, "numa", -(2**63), 2**63 - 1),
        (7, "index", 0, 2**63 - 1),
    ],
)
def test_numbers_in_the_old_form_have_the_width_of_the_field_in_go(
    position: int, field: str, low: int, high: int
) -> None:
    def write(value: object) -> str:
        fields = ["GPU-0", "10", "40960", "100", "NVIDIA-A100", "1", "true", "0", "mig"]
        fields[position] = str(value)
        return f"{','.join(fields)}:"

    for value in (low, high):
        assert isinstance(decode_colon(write(value)), tuple)
    for wrong in (low - 1, high + 1, "", "1.0", " 1"):
        assert decode_colon(COLON + write(wrong)) == Malformed(
            ANNOTATION, f"device 1, field {field}", f"is {str(wrong)!r}, write a whole number from {low} to {high}"
        )


@pytest.mark.parametrize(
    ("text", "location", "problem"),
    [
        ("GPU-0,10", "", "has no ':' after a device"),
        ("GPU-0,10,40960,100,NVIDIA-A100,1,yes:", "device 0, field health", "is 'yes', write true or false"),
        ("GPU-0:", "device 0", "has 1 fields, write 7 or 9"),
        (f"{COLON}GPU-1,10,40960,100,NVIDIA-A100,1,true,0:", "device 1", "has 8 fields, write 7 or 9"),
        ("a,b,c,d,e,f:", "device 0", "has 6 fields, write 7 or 9"),
        ("a,b,c,d,e,f,g,h,i,j:", "device 0", "has 10 fields, write 7 or 9"),
    ],
)
def test_a_malformed_device_in_the_old_form_has_its_place_and_the_remedy(
    text: str, location: str, problem: str
) -> None:
    assert decode_colon(text) == Malformed(ANNOTATION, location, problem)


def test_a_long_text_is_cut_in_the_problem() -> None:
    malformed = decode_colon(f"GPU-0,{'9' * 100},40960,100,NVIDIA-A100,1,true:")
    assert isinstance(malformed, Malformed)
    assert malformed.problem == f"is '{'9' * 39}, write a whole number from {-(2**31)} to {2**31 - 1}"
    malformed = decode_colon(f"GPU-0,10,40960,100,NVIDIA-A100,1,{'y' * 100}:")
    assert isinstance(malformed, Malformed)
    assert malformed.problem == f"is '{'y' * 39}, write true or false"


@pytest.mark.parametrize(
    ("form", "text", "registration"),
    [
        (Form.HAMI, JSON, Registration((A100,), "json")),
        (Form.HAMI, f"  {JSON}", Registration((A100,), "json")),
        (Form.HAMI, COLON, Registration((OLD,), "colon")),
        (Form.JSON, JSON, Registration((A100,), "json")),
        (Form.COLON, COLON, Registration((OLD,), "colon")),
    ],
)
def test_the_form_is_the_one_of_the_vendor_or_is_recognised(form: Form, text: str, registration: Registration) -> None:
    assert decode_registration(text, form=form) == registration


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        (Form.HAMI, 5, "is int, write a string"),
        (Form.HAMI, None, "is NoneType, write a string"),
        (Form.HAMI, "null", "lists no device"),
        (Form.HAMI, "[]", "lists no device"),
        (Form.HAMI, ":", "lists no device"),
        (Form.HAMI, '{"a":1}', "is an object, write a JSON array"),
        (Form.HAMI, '"a:b"', "is a string, write a JSON array"),
        (Form.COLON, "[]", "has no ':' after a device"),
    ],
)
def test_an_annotation_without_devices_is_malformed(form: Form, text: object, problem: str) -> None:
    assert decode_registration(text, "a/b", form) == Malformed("a/b", "", problem)


@pytest.mark.parametrize("text", ["", "GPU-0"])
def test_a_text_in_neither_form_has_the_error_of_json(text: str) -> None:
    malformed = decode_registration(text, "a/b")
    assert isinstance(malformed, Malformed)
    assert malformed.problem.startswith("is not JSON")
    assert malformed.annotation == "a/b"


def test_a_vendor_that_writes_json_is_not_read_in_the_old_form() -> None:
    malformed = decode_registration(COLON, form=Form.JSON)
    assert isinstance(malformed, Malformed)
    assert malformed.problem.startswith("is not JSON")


def test_shared_devices_of_metax_have_their_position_as_index() -> None:
    rows = [
        {
            "uuid": "M-0", "bdf": "0000:01:00.0", "model": "MXC500", "totalDevCount": 16, "totalCompute": 100,
            "totalVRam": 65536, "availableVRam": 1, "numa": 1, "healthy": True,
            "qosPolicy": "best-effort", "linkZone": 2,
        },
        {"uuid": "M-1"},
    ]  # fmt: skip
    extra = (("QosPolicy", "best-effort"), ("Model", "MXC500"), ("LinkZone", 2))
    assert decode_metax(json.dumps(rows), "a/b", "Metax-SGPU") == Registration(
        (
            Device("M-0", 0, 16, 65536, 100, "Metax-SGPU", 1, "", True, (), extra),
            Device(
                "M-1", 1, 0, 0, 0, "Metax-SGPU", 0, "", False, (), (("QosPolicy", ""), ("Model", ""), ("LinkZone", 0))
            ),
        ),
        "json",
    )


@pytest.mark.parametrize("field", ["totalDevCount", "totalCompute", "totalVRam", "numa", "linkZone"])
def test_numbers_of_metax_have_32_bits(field: str) -> None:
    for value in (-(2**31), 2**31 - 1):
        assert isinstance(decode_metax(json.dumps([{field: value}]), "a/b", "M"), Registration)
    for value in (-(2**31) - 1, 2**31):
        problem = f"is {value}, write a number from {-(2**31)} to {2**31 - 1}"
        assert decode_metax(json.dumps([{}, {field: value}]), "a/b", "M") == Malformed(
            "a/b", f"device 1, field {field}", problem
        )


@pytest.mark.parametrize(
    ("text", "location", "problem"),
    [
        (5, "", "is int, write a string"),
        ("[]", "", "lists no device"),
        ("{}", "", "is an object, write a JSON array"),
        ('[{"healthy":1}]', "device 0, field healthy", "is the number 1, write true or false"),
        ('[{"qosPolicy":1}]', "device 0, field qosPolicy", "is the number 1, write a string"),
        ('[{"model":1}]', "device 0, field model", "is the number 1, write a string"),
        ('[{"uuid":1}]', "device 0, field uuid", "is the number 1, write a string"),
    ],
)
def test_a_malformed_list_of_metax_has_its_place_and_the_remedy(text: object, location: str, problem: str) -> None:
    assert decode_metax(text, "a/b", "M") == Malformed("a/b", location, problem)
