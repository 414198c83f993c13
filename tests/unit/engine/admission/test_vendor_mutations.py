"""Containers of other vendors in HAMi's webhook: bounds by the words of its refusals, next to its recorded answers."""

from typing import Any

import pytest

from engine.admission.container_quantities import InvalidRequestError
from engine.admission.vendor_mutations import mutate_vendor
from engine.hami.vendor_catalog import AMD, ENFLAME, METAX, MTHREADS, NEURON, XPU, build_iluvatar
from engine.hami.vendors import Vendor

INT32_MAX = 2**31 - 1


def complete(
    vendor: Vendor, limits: dict[str, str], annotations: dict[str, str] | None = None
) -> tuple[bool, dict[str, Any], dict[str, Any]]:
    """Complete a container, and return whether it requests devices, the container and the pod."""
    container: dict[str, Any] = {"name": "c", "resources": {"limits": limits}}
    pod = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container]}}
    return mutate_vendor(pod, container, vendor), container, pod


def refuse(vendor: Vendor, limits: dict[str, str], annotations: dict[str, str] | None = None) -> str:
    """Return the refusal of a container; empty for one that passes."""
    try:
        complete(vendor, limits, annotations)
    except InvalidRequestError as error:
        return str(error)
    return ""


SLICES, MEMORY, CORES = "enflame.com/drs-gcu", "enflame.com/gcu-memory", "enflame.com/gcu-core"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        ({SLICES: "1"}, ""),
        ({SLICES: "0"}, f"{SLICES} must be greater than 0"),
        ({MEMORY: "1"}, ""),
        ({MEMORY: "0"}, f"{MEMORY} must be greater than 0"),
        ({CORES: "1"}, ""),
        ({CORES: "100"}, ""),
        ({CORES: "0"}, f"{CORES} must be in range (0,100]"),
        ({CORES: "101"}, f"{CORES} must be in range (0,100]"),
        ({}, ""),
    ],
)
def test_enflame_takes_positive_amounts_and_up_to_all_cores(limits: dict[str, str], refusal: str) -> None:
    assert refuse(ENFLAME, limits) == refusal


@pytest.mark.parametrize("limits", [{SLICES: "2"}, {MEMORY: "8", CORES: "50"}, {MEMORY: "8"}])
def test_enflame_requests_what_limits_name(limits: dict[str, str]) -> None:
    is_requested, container, _ = complete(ENFLAME, dict(limits))
    assert is_requested
    assert container["resources"] == {"limits": limits, "requests": limits}
    assert complete(ENFLAME, {"cpu": "1"})[0] is False


NEURONS, NEURON_CORES = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        ({NEURONS: "1"}, ""),
        ({NEURONS: "0"}, f"{NEURONS} must be greater than 0"),
        ({NEURONS: "500m"}, f"{NEURONS} must be an integer"),
        ({NEURONS: str(INT32_MAX)}, ""),
        ({NEURONS: str(INT32_MAX + 1)}, f"{NEURONS} must not exceed {INT32_MAX}"),
        ({NEURON_CORES: "1"}, ""),
        ({NEURON_CORES: "2"}, ""),
        ({NEURON_CORES: "3"}, f"{NEURON_CORES} must be 1 or a multiple of 2, got 3"),
        ({NEURON_CORES: "4"}, ""),
        ({NEURON_CORES: "0"}, f"{NEURON_CORES} must be greater than 0"),
        ({NEURON_CORES: str(2 * INT32_MAX)}, ""),
        ({NEURON_CORES: str(2 * INT32_MAX + 1)}, f"{NEURON_CORES} must not exceed {2 * INT32_MAX}"),
    ],
)
def test_neuron_takes_devices_or_cores_that_fill_devices(limits: dict[str, str], refusal: str) -> None:
    assert refuse(NEURON, limits) == refusal


@pytest.mark.parametrize(
    ("limits", "is_requested"), [({NEURONS: "1"}, True), ({NEURON_CORES: "2"}, True), ({"cpu": "1"}, False)]
)
def test_neuron_is_requested_by_devices_or_cores(limits: dict[str, str], is_requested: bool) -> None:
    assert complete(NEURON, limits)[0] is is_requested


@pytest.mark.parametrize(
    ("cores", "refusal"),
    [
        ("1", ""), ("100", ""), ("0", "{} must be an integer percentage between 1 and 100"),
        ("101", "{} must be an integer percentage between 1 and 100"),
        ("1500m", "{} must be an integer percentage between 1 and 100"),
    ],
)  # fmt: skip
def test_amd_takes_a_percentage_of_cores(cores: str, refusal: str) -> None:
    name = AMD.resources.cores
    assert refuse(AMD, {AMD.resources.count: "1", name: cores}) == refusal.format(name)
    assert refuse(AMD, {name: cores}) == ""


@pytest.mark.parametrize(
    ("count", "memory", "cores_and_memory", "annotation"),
    [
        # A whole device has 16 cores and 96 units of memory.
        ("1", None, ("16", "96"), None),
        ("2", None, ("32", "192"), "2"),
        ("2", "3", ("32", "192"), "2"),
        ("1", "32", (None, "32"), None),
    ],
)
def test_mthreads_gives_whole_devices_where_no_part_is_requested(
    count: str, memory: str | None, cores_and_memory: tuple[str | None, str], annotation: str | None
) -> None:
    names = MTHREADS.resources
    limits = {names.count: count, **({names.memory: memory} if memory else {})}
    is_requested, container, pod = complete(MTHREADS, limits)
    completed = container["resources"]["limits"]
    assert is_requested
    assert (completed.get(names.cores), completed[names.memory]) == cores_and_memory
    assert list(pod["metadata"]["annotations"].values()) == ([annotation] if annotation else [])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16, 32, 64, 65, 96, 97])
def test_mthreads_cuts_devices_into_the_sizes_of_its_refusal(size: int) -> None:
    names = MTHREADS.resources
    is_size = size in (2, 4, 8, 16, 32, 64, 96)
    refusal = "sGPU memory request value is invalid, valid values are [2, 4, 8, 16, 32, 64, 96]"
    assert refuse(MTHREADS, {names.count: "1", names.memory: str(size)}) == ("" if is_size else refusal)


@pytest.mark.parametrize(("count", "cores"), [("1", None), ("2", "200"), ("10", "1k")])
def test_several_devices_of_iluvatar_are_whole_ones(count: str, cores: str | None) -> None:
    vendor = build_iluvatar("BI-V100")
    is_requested, container, _ = complete(vendor, {vendor.resources.count: count})
    assert is_requested
    assert container["resources"]["limits"].get(vendor.resources.cores) == cores
    assert container["env"] == [{"name": "SOL_CONTINER_NAME", "value": "c"}]
    mutate_vendor({"spec": {}}, container, vendor)
    assert len(container["env"]) == 1
    assert complete(vendor, {"cpu": "1"})[0] is False


QOS, APP_CLASS = "metax-tech.com/sgpu-qos-policy", "metax-tech.com/sgpu-app-class"


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [({}, "best-effort"), ({QOS: "fixed-share"}, "fixed-share"), ({APP_CLASS: "online"}, None)],
)
def test_metax_has_a_policy_unless_the_application_is_online(annotations: dict[str, str], policy: str | None) -> None:
    _, _, pod = complete(METAX, {METAX.resources.count: "1"}, annotations)
    assert pod["metadata"]["annotations"].get(QOS) == policy


@pytest.mark.parametrize(
    ("count", "annotations", "refusal"),
    [
        ("1", {QOS: "x"}, f"{QOS} must be set one of [best-effort, fixed-share, burst-share]"),
        ("2", {APP_CLASS: "online"}, "app-class pod must request single device"),
        ("1", {APP_CLASS: "x"}, f"{APP_CLASS} must be set one of [online, offline]"),
        ("2", {}, ""),
    ],
)
def test_metax_refuses_other_policies_and_classes(count: str, annotations: dict[str, str], refusal: str) -> None:
    assert refuse(METAX, {METAX.resources.count: count}, annotations) == refusal


# The sizes that HAMi documents for vXPUs are 24576 and 49152; a device has 98304.
@pytest.mark.parametrize(
    ("memory", "size"), [("1", "24576"), ("24576", "24576"), ("24577", "49152"), ("49153", "98304")]
)
def test_memory_of_an_xpu_is_rounded_up_to_a_part(memory: str, size: str) -> None:
    names = XPU.resources
    is_requested, container, _ = complete(XPU, {names.count: "1", names.memory: memory})
    assert is_requested
    assert container["resources"]["limits"][names.memory] == container["resources"]["requests"][names.memory] == size
    unlimited = complete(XPU, {names.count: "1"})[1]
    assert unlimited["resources"] == {"limits": {names.count: "1"}}
