"""The properties that decide a selector: devices that agree in them are evaluated once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.claims.cel.selector import compile_selector
from tests.support.builders.cel_devices import GPU, build_device


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        (f"{GPU}.model == 'A100'", {("attributes", "gpu.nvidia.com", "model")}),
        ("device.attributes[device.driver].model == 'A100'", {("attributes", "", "model")}),
        ("device.capacity['x.com'].?memory.hasValue()", {("capacity", "x.com", "memory")}),
        (f"'model' in {GPU}", {("attributes", "gpu.nvidia.com", "model")}),
        (
            f"cel.bind(gpu, {GPU}, gpu.index > 1 && gpu.mig)",
            {("attributes", "gpu.nvidia.com", "index"), ("attributes", "gpu.nvidia.com", "mig")},
        ),
        ("device.driver == 'x'", set()),
        ("device.allowMultipleAllocations", set()),
    ],
)
def test_what_a_selector_reads_is_known(expression: str, paths: set[tuple[str, str, str]]) -> None:
    reads = compile_selector(expression).reads
    assert reads is not None
    assert set(reads.paths) == paths


@pytest.mark.parametrize(
    "expression", [f"size({GPU}) > 3", f"{GPU}.exists(name, name == 'model')", f"{GPU}[device.driver] == 1"]
)
def test_a_selector_over_all_properties_may_read_any(expression: str) -> None:
    assert compile_selector(expression).reads is None


@given(st.integers(0, 3), st.text(max_size=3))
def test_properties_that_are_not_read_do_not_change_an_outcome(index: int, other: str) -> None:
    selector = compile_selector(f"{GPU}.index > 1 && {GPU}.model == 'A100'")
    outcomes = {selector.evaluate(build_device(index=index, **extra)).truth for extra in ({}, {"other": other})}
    assert len(outcomes) == 1
