"""Keys of HAMi's device configuration: the field that each sets, and the values that it may have.

Keys are those of the ConfigMap of HAMi's chart (https://project-hami.io/docs/userguide/configure).
"""

from collections.abc import Callable
from typing import Any

import pytest

from engine.fit.device_config_keys import (
    ANNOTATIONS,
    FOR_DEVICE_PLUGINS,
    LISTED,
    SINGLE,
    ConfigMistakeError,
    Fields,
    describe_kind,
    expect_mapping,
    read_amount,
    read_flag,
    read_sizes,
    read_step,
    read_templates,
    read_text,
)
from runtime.files.yaml_lines import Mapping, parse_documents

Read = Callable[[Mapping, str], Any]


def parse(text: str) -> Mapping:
    ((_, value),) = parse_documents(text.encode())
    assert isinstance(value, Mapping)
    return value


def fail(read: Read, value: str) -> tuple[int, str]:
    """Read a value that may not be; return the line and the problem."""
    with pytest.raises(ConfigMistakeError) as raised:
        read(parse(f"other: 1\nkey: {value}\n"), "key")
    assert raised.value.args == (raised.value.line, raised.value.problem)
    return raised.value.line, raised.value.problem


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "nothing"), ({}, "a mapping"), (Mapping(1), "a mapping"), ([], "a list"), ("a", "a text"),
        (True, "true or false"), (7, "the number 7"), (1.5, "the number 1.5"),
        (10**60, f"the number 1{'0' * 39}"),
    ],
)  # fmt: skip
def test_a_value_is_described_by_its_kind(value: Any, kind: str) -> None:
    assert describe_kind(value) == kind


def test_a_section_is_a_mapping() -> None:
    section = parse("a: 1")
    assert expect_mapping(section, 5) is section
    with pytest.raises(ConfigMistakeError) as raised:
        expect_mapping(["a"], 5)
    assert (raised.value.line, raised.value.problem) == (5, "is a list, write a mapping of keys to values")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (read_text, "abc", "abc"),
        (read_text, "'1'", "1"),
        (read_text, "''", ""),
        (read_text, "", ""),
        (read_amount, "0", 0),
        (read_amount, "1024", 1024),
        (read_amount, "2147483647", 2_147_483_647),
        (read_step, "1", 1),
        (read_step, "2", 2),
        (read_flag, "true", True),
        (read_flag, "false", False),
        (read_flag, "'true'", True),
        (read_flag, "'False'", False),
        (read_flag, "'TRUE'", True),
        (read_sizes, "[]", ()),
        (read_sizes, "[{memory: 6144}, {memory: 3072, name: a}]", (3072, 6144)),
        (read_templates, "[]", ()),
        (
            read_templates,
            "[{name: vir02, memory: 6144}, {memory: 3072, name: vir01, aiCore: 1}, {memory: 12288}]",
            ((3072, "vir01"), (6144, "vir02"), (12_288, "")),
        ),
        (read_templates, "[{memory: 1, name: b}, {memory: 1, name: a}]", ((1, "a"), (1, "b"))),
    ],
)
def test_a_value_is_read_by_its_type(read: Read, text: str, value: Any) -> None:
    result = read(parse(f"key: {text}"), "key")
    assert (type(result), result) == (type(value), value)


@pytest.mark.parametrize(
    ("read", "text", "problem"),
    [
        (read_text, "1", "key is the number 1, write a text"),
        (read_text, "true", "key is true or false, write a text"),
        (read_text, "[a]", "key is a list, write a text"),
        (read_text, "{a: b}", "key is a mapping, write a text"),
        (read_amount, "", "key is nothing, write a whole number from 0 to 2147483647"),
        (read_amount, "-1", "key is the number -1, write a whole number from 0 to 2147483647"),
        (read_amount, "2147483648", "key is the number 2147483648, write a whole number from 0 to 2147483647"),
        (read_amount, "1.5", "key is the number 1.5, write a whole number from 0 to 2147483647"),
        (read_amount, "true", "key is true or false, write a whole number from 0 to 2147483647"),
        (read_amount, "'1'", "key is a text, write a whole number from 0 to 2147483647"),
        (read_step, "0", "key is 0, write 1 or more"),
        (read_step, "-1", "key is the number -1, write a whole number from 0 to 2147483647"),
        (read_flag, "", "key is nothing, write true or false"),
        (read_flag, "1", "key is the number 1, write true or false"),
        (read_flag, "'yes'", "key is a text, write true or false"),
        (read_sizes, "1", "key is the number 1, write a list"),
        (read_sizes, "{memory: 1}", "key is a mapping, write a list"),
        (read_templates, "", "key is nothing, write a list"),
        (read_templates, "[1]", "is the number 1, write a mapping of keys to values"),
        (read_templates, "[{name: a}]", "key: memory is missing"),
        (read_templates, "[{memory: -1}]", "memory is the number -1, write a whole number from 0 to 2147483647"),
        (read_templates, "[{memory: 1, name: 2}]", "name is the number 2, write a text"),
    ],
)
def test_a_value_of_another_type_is_a_mistake_in_its_line(read: Read, text: str, problem: str) -> None:
    assert fail(read, text) == (2, problem)


def test_a_mistake_in_a_template_names_the_line_of_the_template() -> None:
    section = parse("key:\n  - {memory: 1}\n  - {name: a}\n  - {memory: x}\n")
    with pytest.raises(ConfigMistakeError) as raised:
        read_templates(section, "key")
    assert (raised.value.line, raised.value.problem) == (3, "key: memory is missing")


def list_set_fields(fields: Fields) -> dict[str, str]:
    """List the keys that set a field of a vendor, as ``part.field``."""
    return {key: f"{part}.{field}".strip(".") for key, (part, field, _) in fields.items() if field}


COMMON = {
    "resourceCountName": "resources.count",
    "resourceMemoryName": "resources.memory",
    "resourceMemoryPercentageName": "resources.percentage",
    "resourceCoreName": "resources.cores",
    "resourcePriorityName": "resources.priority",
    "memoryFactor": "amounts.memory_unit_mib",
    "defaultMemory": "amounts.default_memory_mib",
    "defaultCores": "amounts.default_cores",
    "defaultGPUNum": "amounts.default_count",
    "overwriteEnv": "admission.overwrites_env",
    "gpuCorePolicy": "admission.core_policy",
    "runtimeClassName": "admission.runtime_class",
}
"""Keys that HAMi's document lists for NVIDIA."""
VIRTUAL = {
    "resourceVCountName": "resources.count",
    "resourceVMemoryName": "resources.memory",
}


@pytest.mark.parametrize(
    ("section", "words", "fields"),
    [
        ("nvidia", ["NVIDIA"], [COMMON]),
        ("hygon", ["DCU"], [COMMON]),
        ("cambricon", ["MLU"], [COMMON]),
        ("mthreads", ["Mthreads"], [COMMON]),
        ("awsneuron", ["AWSNeuron"], [COMMON]),
        ("amd", ["AMD"], [COMMON]),
        ("biren", ["Biren"], [COMMON]),
        ("vastai", ["Vastai"], [COMMON]),
        (
            "metax",
            ["Metax-SGPU", "Metax-GPU"],
            [
                VIRTUAL | {"resourceVCoreName": "resources.cores", "sgpuTopologyAware": "chip.link_aware"},
                {"resourceCountName": "resources.count"},
            ],
        ),
        ("kunlun", ["kunlun", "XPU"], [{"resourceCountName": "resources.count"}, VIRTUAL]),
        (
            "enflame",
            ["Enflame", "GCU"],
            [
                {
                    "resourceNameDRSGCU": "resources.count",
                    "resourceNameGCUMemory": "resources.memory",
                    "resourceNameGCUCore": "resources.cores",
                },
                {"resourceNameGCU": "resources.count"},
            ],
        ),
    ],
)
def test_a_section_has_hamis_keys_for_each_of_its_vendors(
    section: str, words: list[str], fields: list[dict[str, str]]
) -> None:
    rows = SINGLE[section]
    assert [vendor.word.lower() for vendor, _ in rows] == [word.lower() for word in words]
    for (_, actual), expected in zip(rows, fields, strict=True):
        assert expected.items() <= list_set_fields(actual).items()
    # A key that one vendor of a section reads is no mistake for the others.
    assert len({frozenset(actual) for _, actual in rows}) == 1


@pytest.mark.parametrize(
    ("section", "position", "ignored"),
    [
        ("metax", 0, {"resourceCountName"}),
        ("metax", 1, {"resourceVCountName", "resourceVMemoryName", "resourceVCoreName"}),
        ("kunlun", 0, {"resourceVCountName", "resourceVMemoryName"}),
        ("kunlun", 1, {"resourceCountName"}),
        ("enflame", 0, {"resourceNameGCU"}),
        ("enflame", 1, {"resourceNameDRSGCU", "resourceNameGCUMemory", "resourceNameGCUCore"}),
    ],
)
def test_keys_of_the_other_vendor_of_a_section_are_ignored(section: str, position: int, ignored: set[str]) -> None:
    fields = SINGLE[section][position][1]
    assert ignored <= fields.keys() - list_set_fields(fields).keys()


@pytest.mark.parametrize(
    ("section", "key", "word"),
    [("iluvatars", "commonWord", "BI-V100"), ("vnpus", "commonWord", "Ascend910B"), ("vendors", "word", "acme")],
)
def test_a_chip_of_a_list_has_the_word_that_names_it(section: str, key: str, word: str) -> None:
    word_key, build, fields = LISTED[section]
    assert word_key == key
    assert build(word).word == word
    assert key in fields
    assert key not in list_set_fields(fields)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            "vnpus",
            {
                "resourceName": "resources.count",
                "resourceMemoryName": "resources.memory",
                "memoryAllocatable": "amounts.whole_mib",
                "memoryCapacity": "amounts.capacity_mib",
                "templates": "chip.templates",
                "superPod": "chip.super_pod",
                "hamiVnpuCore": "chip.soft_split",
            },
        ),
        (
            "vendors",
            {
                "resourceCountName": "resources.count",
                "templates": "amounts.shares_mib",
                "typeWord": "model_word",
                "countStep": "admission.count_step",
                "sharesStandAlone": "admission.shares_stand_alone",
                "severalAreWhole": "admission.several_are_whole",
            },
        ),
    ],
)
def test_a_list_of_chips_has_keys_of_its_own(section: str, expected: dict[str, str]) -> None:
    assert expected.items() <= list_set_fields(LISTED[section][2]).items()


def test_every_key_sets_a_field_that_its_vendor_has() -> None:
    rows = [row for rows in SINGLE.values() for row in rows]
    rows += [(build("word"), fields) for _, build, fields in LISTED.values()]
    for vendor, fields in rows:
        for key, (part, field, _) in {**fields, **ANNOTATIONS}.items():
            owner = getattr(vendor, part) if part else vendor
            assert not field or hasattr(owner, field), key


def test_annotations_are_of_the_node_or_of_the_pod() -> None:
    assert {key: part for key, (part, _, _) in ANNOTATIONS.items()} == {
        "register": "node", "handshake": "node", "toAllocate": "pod", "allocated": "pod", "useType": "pod",
        "noUseType": "pod", "useUUID": "pod", "noUseUUID": "pod", "numaBind": "pod", "mode": "pod",
    }  # fmt: skip
    assert all(read is read_text for _, _, read in ANNOTATIONS.values())


def test_keys_for_device_plugins_set_nothing_here() -> None:
    assert {"deviceSplitCount", "deviceMemoryScaling", "knownMigGeometries", "libCudaLogLevel"} <= FOR_DEVICE_PLUGINS
    tables = [fields for rows in SINGLE.values() for _, fields in rows] + [fields for _, _, fields in LISTED.values()]
    assert not any(FOR_DEVICE_PLUGINS & fields.keys() for fields in tables)
