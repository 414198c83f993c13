"""The device configuration: HAMi's file, and mistakes in it named by line."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from engine.fit import device_config
from engine.fit.device_config import DeviceConfigError, parse
from engine.fit.device_config_keys import LISTED, SINGLE
from engine.hami.vendors import NVIDIA
from tests.conformance.configured import CONFIGURATIONS


def test_the_shipped_table_holds_every_vendor_that_is_served() -> None:
    words = [vendor.word for vendor in device_config.read(device_config.SHIPPED)]
    assert words[:4] == ["NVIDIA", "DCU", "MLU", "Metax-SGPU"]
    assert {"MR-V100", "Ascend910B3"} <= set(words)


def test_the_shipped_nvidia_row_is_the_one_that_is_built_in() -> None:
    shipped = device_config.read(device_config.SHIPPED)[0]
    assert shipped.resources == NVIDIA.resources
    assert (shipped.node, shipped.pod, shipped.amounts) == (NVIDIA.node, NVIDIA.pod, NVIDIA.amounts)


HAMIS = """\
nvidia:
  resourceCountName: example.com/gpu
  defaultMemory: 1024
  overwriteEnv: "true"
  deviceSplitCount: 10
  migProfileAllowlist:
    - models: ["A30"]
      profiles: ["1g.6gb"]
enflame:
  resourceNameGCU: enflame.com/gcu
vnpus:
  hamiVnpuCore: false
  configs:
    - chipName: 310P3
      commonWord: Ascend310P
      resourceName: example.com/npu
      memoryAllocatable: 21527
      memoryCapacity: 24576
      aiCore: 8
      templates:
        - {name: vir02, memory: 6144, aiCore: 2}
        - {name: vir01, memory: 3072, aiCore: 1}
"""


def test_hamis_own_file_is_read() -> None:
    nvidia, *_, ascend = parse(HAMIS.encode(), "file")
    assert nvidia.resources.count == "example.com/gpu"
    assert nvidia.resources.memory == "nvidia.com/gpumem"
    assert (nvidia.amounts.default_memory_mib, nvidia.admission.overwrites_env) == (1024, True)
    assert (ascend.resources.count, [size for size, _ in ascend.chip.templates]) == ("example.com/npu", [3072, 6144])
    assert [ascend.chip.choose_template(mib) for mib in (1, 3072, 3073, 20000)] == ["vir01", "vir01", "vir02", ""]


def test_hamis_configmap_is_read_as_it_is() -> None:
    configmap = yaml.safe_dump({"kind": "ConfigMap", "data": {"device-config.yaml": HAMIS}})
    assert parse(configmap.encode(), "file") == parse(HAMIS.encode(), "file")


def test_a_vendor_that_hami_does_not_know_can_be_described() -> None:
    text = """\
vendors:
  - word: Acme
    resourceCountName: acme.com/card
    resourceMemoryName: acme.com/memory
    annotations: {register: acme.com/cards, useUUID: acme.com/use}
"""
    (acme,) = parse(text.encode(), "file")
    assert (acme.word, acme.node.register, acme.pod.use_uuid) == ("Acme", "acme.com/cards", "acme.com/use")
    assert acme.pod.allocated == "hami.io/Acme-devices-allocated"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("nvidia:\n  resourceCountNam: x\n", "file, line 2: resourceCountNam is not known here"),
        ("nvidia:\n  defaultCores: many\n", "file, line 2: defaultCores is a text, write a whole number"),
        ("nvidia:\n\n  overwriteEnv: 3\n", "file, line 3: overwriteEnv is the number 3, write true or false"),
        ("nvidia:\n  annotations:\n    regster: x\n", "file, line 3: regster is not known here"),
        ("vendors:\n  - word: Acme\n    countStep: 0\n", "file, line 3: countStep is 0, write 1 or more"),
        ("nvidea: {}\n", "file, line 1: nvidea is not a known vendor"),
        ("nvidia: 3\n", "file, line 1: is the number 3, write a mapping"),
        ("iluvatars:\n  - chipName: x\n", "file, line 2: commonWord is missing"),
        ("vnpus: {}\n", "file, line 1: vnpus is nothing, write a list"),
        ("nvidia: {}\nnvidia: {}\n", "file, line 2: nvidia is defined here again"),
        ("nvidia: [\n", "file, line 2: is not YAML"),
        ("", "file, line 1: holds 0 documents, write one"),
        ("vendors:\n  - word: Acme\n", "file, line 2: resourceCountName is missing for Acme"),
        ("hygon: {resourceCountName: nvidia.com/gpu}\nnvidia: {}\n", "nvidia.com/gpu is used by two vendors"),
        ("nvidia: {defaultMemory: true}\n", "line 1: defaultMemory is true or false, write a whole number from 0"),
        ("nvidia: {defaultMemory: -1}\n", "defaultMemory is the number -1, write a whole number from 0 to 2147483647"),
        ("nvidia: {defaultMemory: 2147483648}\n", "defaultMemory is the number 2147483648, write a whole number"),
        ("nvidia: {defaultMemory: {}}\n", "defaultMemory is a mapping, write a whole number"),
        ("nvidia: {overwriteEnv: yes please}\n", "overwriteEnv is a text, write true or false"),
        ("nvidia: {overwriteEnv: 1}\n", "overwriteEnv is the number 1, write true or false"),
        ("nvidia: {gpuCorePolicy: [force]}\n", "gpuCorePolicy is a list, write a text"),
        ("nvidia: {countStep: 0}\n", "countStep is 0, write 1 or more"),
        ("vnpus:\n  - {commonWord: A, templates: 3}\n", "templates is the number 3, write a list"),
        ("vnpus:\n  - {commonWord: A, templates: [{name: x}]}\n", "templates: memory is missing"),
    ],
)
def test_a_mistake_is_reported_with_file_and_line(text: str, written: str) -> None:
    with pytest.raises(DeviceConfigError) as error:
        parse(text.encode(), "file")
    assert written in str(error.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DeviceConfigError, match="No such file"):
        device_config.read(tmp_path / "none.yaml")


_KEYS = st.sampled_from(
    ["nvidia", "vnpus", "iluvatars", "vendors", "metax", "templates", "annotations", "word", "commonWord", "data"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(st.binary(max_size=40) | _VALUES.map(lambda value: yaml.safe_dump(value).encode()))
def test_any_file_is_a_table_or_a_mistake(text: bytes) -> None:
    try:
        parse(text, "file")
    except DeviceConfigError as error:
        written = str(error)
    else:
        return
    assert written.startswith("file, line ")


def test_every_section_of_hamis_chart_has_a_vendor() -> None:
    """The file of the recorded answers has all that HAMi v2.10's chart configures."""
    sections = set(yaml.safe_load((CONFIGURATIONS / "chart.yaml").read_text()))
    assert sections <= {*SINGLE, *LISTED}
    words = {vendor.word for vendor in device_config.read(CONFIGURATIONS / "chart.yaml")}
    assert {"AMD", "Biren", "Vastai", "NVIDIA", "DCU"} <= words


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("2147483647", 2**31 - 1), ("null", None)])
def test_an_amount_may_have_31_bits(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(DeviceConfigError, match="defaultMemory is nothing"):
            parse(f"nvidia: {{defaultMemory: {text}}}".encode(), "file")
    else:
        nvidia, *_ = parse(f"nvidia: {{defaultMemory: {text}}}".encode(), "file")
        assert nvidia.amounts.default_memory_mib == expected


@pytest.mark.parametrize(("text", "is_set"), [("true", True), ("'True'", True), ("false", False), ("'false'", False)])
def test_a_flag_may_be_a_text_as_hamis_chart_writes_it(text: str, is_set: bool) -> None:
    nvidia, *_ = parse(f"nvidia: {{overwriteEnv: {text}}}".encode(), "file")
    assert nvidia.admission.overwrites_env is is_set


@pytest.mark.parametrize(("line", "is_soft"), [("", False), ("  hamiVnpuCore: true\n", True)])
def test_the_switch_of_all_ascend_chips_may_be_absent(line: str, is_soft: bool) -> None:
    *_, ascend = parse(f"vnpus:\n{line}  configs:\n    - {{commonWord: Ascend310P}}\n".encode(), "file")
    assert (ascend.word, ascend.chip.soft_split) == ("Ascend310P", is_soft)
