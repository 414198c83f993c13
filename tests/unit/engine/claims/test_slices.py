"""Fields of ResourceSlices of resource.k8s.io/v1 and v1beta1, and values that all devices of a slice have.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-slice-v1/
"""

from typing import Any

import pytest

from engine.claims.slices import Pool, PoolState, PropertySummary, Slice, read_slice
from engine.snapshot.fields import FieldError
from tests.support.builders.claims import DRIVER, a_device, a_slice
from tests.support.builders.cluster import Object


def read(*devices: Object, **spec: Any) -> Slice:
    return read_slice("s1", a_slice(*devices, **spec))


def test_a_slice_has_the_fields_of_its_object() -> None:
    value = a_slice(a_device("g0"), node="n1", pool="p", sharedCounters=[{"name": "c"}], allNodes=False)
    value["spec"]["pool"] = {"name": "p", "generation": 7, "resourceSliceCount": 3}
    slice_ = read_slice("s1", value)
    assert (slice_.name, slice_.driver, slice_.pool, slice_.pool_id) == ("s1", DRIVER, "p", (DRIVER, "p"))
    assert (slice_.generation, slice_.slice_count, slice_.node_name) == (7, 3, "n1")
    assert (slice_.is_for_all_nodes, slice_.selects_per_device, slice_.node_selector) == (False, False, None)
    assert slice_.has_counters
    assert slice_.object is value
    assert slice_.spec is value["spec"]


def test_an_empty_slice_has_no_devices() -> None:
    slice_ = read_slice("s1", {})
    assert (slice_.driver, slice_.pool, slice_.node_name) == ("", "", "")
    assert (slice_.generation, slice_.slice_count) == (0, 0)
    assert (slice_.devices, len(slice_.plain_devices)) == ((), 0)
    assert not slice_.has_counters
    assert slice_.is_plain
    assert slice_.is_simple
    assert slice_.has_unique_names
    assert slice_.attributes == slice_.capacity == PropertySummary({}, frozenset())


def test_a_slice_is_for_all_nodes_or_for_those_that_it_selects() -> None:
    assert read(allNodes=True).is_for_all_nodes
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    selector = read(nodeSelector={"nodeSelectorTerms": terms}).node_selector
    assert selector is not None
    assert [condition.key for term in selector.terms for condition in term.expressions] == ["zone"]


@pytest.mark.parametrize(
    ("devices", "is_plain", "is_simple"),
    [
        ([a_device("g0", "80Gi", {"model": "A100", "index": 0, "mig": False, "version": "1.2.3"})], True, True),
        ([a_device("g0"), a_device("g1", taints=[])], False, False),
        ([a_device("g0", taints=[]), a_device("g1")], False, False),
        ([a_device("g0", nodeName="n1")], False, False),
        ([a_device("g0", consumesCounters=[])], False, False),
        # A capacity with a policy of requests is for a device that is shared.
        ([a_device("g0", capacity={"memory": {"value": "1Gi", "requestPolicy": {}}})], False, False),
        ([a_device("g0", capacity={"memory": {"value": "1Gi"}, "slots": "1"})], False, False),
        # A selector may fail on an attribute without one value of one type.
        ([a_device("g0", attributes={}) | {"attributes": {"model": {}}}], True, False),
        ([a_device("g0") | {"attributes": {"model": {"string": "a", "int": 1}}}, a_device("g1")], True, False),
        ([a_device("g1"), a_device("g0") | {"attributes": {"links": {"strings": ["a"]}}}], True, False),
        ([a_device("g0") | {"attributes": {"driver": {"version": "no version"}}}], True, False),
    ],
)
def test_a_device_is_plain_without_fields_that_decide_more_than_selectors(
    devices: list[Object], is_plain: bool, is_simple: bool
) -> None:
    slice_ = read(*devices)
    assert (slice_.is_plain, slice_.is_simple) == (is_plain, is_simple)
    assert [device.is_plain for device in slice_.devices].count(False) == (0 if is_plain else 1)
    assert all(device.is_plain and device.is_evaluable for device in slice_.devices) is is_simple


def test_devices_with_a_node_selection_of_their_own_are_not_simple() -> None:
    slice_ = read(a_device("g0"), node="", perDeviceNodeSelection=True)
    assert slice_.selects_per_device
    assert slice_.is_plain
    assert not slice_.is_simple
    assert slice_.devices == read(a_device("g0")).devices


@pytest.mark.parametrize("more", [{}, {"taints": []}])
def test_a_device_keeps_its_properties_and_its_place(more: Object) -> None:
    first = a_device("g0", "80Gi", {"model": "A100"})
    second = a_device("g1", "40Gi", {"model": "H100"}, **more)
    devices = read(first, second).devices
    assert [device.name for device in devices] == ["g0", "g1"]
    assert [device.path for device in devices] == ["spec.devices[0]", "spec.devices[1]"]
    assert devices[0].attributes == {"model": {"string": "A100"}}
    assert devices[1].capacity == {"memory": {"value": "40Gi"}}
    assert [device.object for device in devices] == [first, second]
    assert [device.is_plain for device in devices] == [True, not more]
    assert [device.is_evaluable for device in devices] == [True, True]


@pytest.mark.parametrize("more", [{}, {"taints": []}])
def test_a_device_may_have_no_properties(more: Object) -> None:
    (device,) = read({"name": "g0", "attributes": None, "capacity": None} | more).devices
    assert (device.name, device.attributes, device.capacity) == ("g0", {}, {})
    (device,) = read(dict(more)).devices
    assert (device.name, device.attributes, device.capacity) == ("", {}, {})


def test_a_device_of_v1beta1_has_its_properties_one_level_deeper() -> None:
    basic = {"attributes": {"model": {"string": "A100"}}, "capacity": {"memory": {"value": "1Gi"}}, "taints": []}
    slice_ = read({"name": "g0", "basic": basic}, {"name": "g1"})
    assert [device.name for device in slice_.devices] == ["g0", "g1"]
    assert slice_.devices[0].attributes == {"model": {"string": "A100"}}
    assert [device.is_plain for device in slice_.devices] == [False, True]
    assert slice_.plain_devices[0] == {"name": "g0", **basic}


@pytest.mark.parametrize(
    ("devices", "common", "others"),
    [
        ([], {}, set()),
        ([{"a": 1, "b": 2}], {"a": 1, "b": 2}, set()),
        ([{"a": 1, "b": 2}, {"a": 1, "b": 3}], {"a": 1}, {"b"}),
        ([{"a": 1, "b": 2}, {"a": 1}], {"a": 1}, {"b"}),
        ([{"a": 1}, {"a": 1, "b": 2}], {"a": 1}, {"b"}),
        ([{"a": 1}, {}], {}, {"a"}),
        ([{"a": 1}, {"a": 2}, {"a": 1}], {}, {"a"}),
        ([{"a": 1}, None], {}, {"a"}),
    ],
)
def test_a_slice_has_the_values_that_all_its_devices_have(
    devices: list[dict[str, int] | None], common: dict[str, int], others: set[str]
) -> None:
    values = [
        {name: {"int": value} for name, value in device.items()} if device is not None else None for device in devices
    ]
    slice_ = read(*({"name": f"g{number}", "attributes": value} for number, value in enumerate(values)))
    assert slice_.attributes == PropertySummary(
        {name: {"int": value} for name, value in common.items()}, frozenset(others)
    )
    amounts = [
        {name: {"value": str(value)} for name, value in device.items()} if device is not None else None
        for device in devices
    ]
    slice_ = read(*({"name": f"g{number}", "capacity": value} for number, value in enumerate(amounts)))
    assert slice_.capacity == PropertySummary(
        {name: {"value": str(value)} for name, value in common.items()}, frozenset(others)
    )


@pytest.mark.parametrize(("names", "are_unique"), [(["a", "b"], True), (["a", "a"], False), (["a", "b", "a"], False)])
def test_names_of_devices_are_unique(names: list[str], are_unique: bool) -> None:
    assert read(*map(a_device, names)).has_unique_names is are_unique


@pytest.mark.parametrize(
    ("number", "value"),
    [(None, 0), (0, 0), (5, 5), (-1, -1), (2**63 - 1, 2**63 - 1), (1 - 2**63, 1 - 2**63)],
)
def test_a_generation_is_a_whole_number_of_64_bits(number: int | None, value: int) -> None:
    object_ = a_slice()
    object_["spec"]["pool"] = {"generation": number, "resourceSliceCount": number}
    slice_ = read_slice("s1", object_)
    assert (slice_.generation, slice_.slice_count) == (value, value)


_BAD_FIELDS = [
    ({"spec": []}, "spec is a list of 0 entries, not a mapping"),
    ({"spec": {"pool": "p"}}, "spec.pool is 'p', not a mapping"),
    ({"spec": {"driver": 1}}, "spec.driver is 1, not a string"),
    ({"spec": {"nodeName": 1}}, "spec.nodeName is 1, not a string"),
    ({"spec": {"allNodes": "yes"}}, "spec.allNodes is 'yes', not true or false"),
    ({"spec": {"perDeviceNodeSelection": 1}}, "spec.perDeviceNodeSelection is 1, not true or false"),
    ({"spec": {"pool": {"name": 1}}}, "spec.pool.name is 1, not a string"),
    ({"spec": {"pool": {"generation": True}}}, "spec.pool.generation is True, not a whole number of 64 bits"),
    ({"spec": {"pool": {"generation": "1"}}}, "spec.pool.generation is '1', not a whole number of 64 bits"),
    ({"spec": {"pool": {"generation": 1.0}}}, "spec.pool.generation is 1.0, not a whole number of 64 bits"),
    ({"spec": {"pool": {"generation": 2**63}}},
     "spec.pool.generation is 9223372036854775808, not a whole number of 64 bits"),
    ({"spec": {"pool": {"resourceSliceCount": "1"}}},
     "spec.pool.resourceSliceCount is '1', not a whole number of 64 bits"),
    ({"spec": {"nodeSelector": "x"}}, "spec.nodeSelector is 'x', not a mapping"),
    ({"spec": {"devices": {}}}, "spec.devices is a mapping of 0 entries, not a list"),
    ({"spec": {"devices": [{}, "g"]}}, "spec.devices[1] is 'g', not a mapping"),
    ({"spec": {"devices": [{"basic": {}}, "g"]}}, "spec.devices[1] is 'g', not a mapping"),
    ({"spec": {"devices": [{"basic": 1}]}}, "spec.devices[0].basic is 1, not a mapping"),
    ({"spec": {"devices": [{}, {"name": 1}]}}, "spec.devices[1].name is 1, not a string"),
    ({"spec": {"devices": [{"attributes": 1}]}}, "spec.devices[0].attributes is 1, not a mapping"),
    ({"spec": {"devices": [{"capacity": 1}]}}, "spec.devices[0].capacity is 1, not a mapping"),
    ({"spec": {"devices": [{}, {"attributes": {"a": {"int": "1"}}}]}},
     "spec.devices[1].attributes[a].int is '1', not a value of type int"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), _BAD_FIELDS)
def test_a_field_of_the_wrong_type_rejects_the_slice(value: Object, message: str) -> None:
    with pytest.raises(FieldError) as raised:
        read_slice("s1", value)
    assert str(raised.value) == message


def test_a_pool_is_usable_in_one_state_only() -> None:
    pools = [Pool(("d", "p"), state, (), ()) for state in PoolState]
    assert [pool.state.value for pool in pools if pool.is_usable] == ["usable"]
    assert (pools[0].title, pools[0].generation, pools[0].seen, pools[0].expected) == ("d/p", 0, 0, 0)
