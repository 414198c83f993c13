"""Replays expressions about devices that Kubernetes 1.36.3's own CEL compiler has answered."""

from collections.abc import Iterator
from typing import Final

from engine.claims.cel.attributes import make_device
from engine.claims.cel.selector import Outcome, Truth, compile_selector
from engine.claims.device_values import AttributeValueError, read_attributes, read_capacity_value
from tests.conformance.difference import Case, Difference

_FIELDS: Final = {Truth.RUN_ERROR: "run", Truth.COMPILE_ERROR: "compile", Truth.UNJUDGED: "unjudged"}


def compare_cel(case: Case) -> Iterator[Difference]:
    """Yield a difference if an expression has another outcome on the device."""
    ours = evaluate(case)
    answer: tuple[str, object] = (_FIELDS[ours.truth], ours.text) if ours.truth in _FIELDS else ("result", ours.is_true)
    recorded = next((field, case[field]) for field in ("result", "run", "compile") if field in case)
    if answer != recorded:
        yield Difference("", case["expression"], answer, recorded)


def evaluate(case: Case) -> Outcome:
    """Evaluate the expression of a case on its device."""
    device, with_lists = case["device"], case.get("lists", False)
    selector = compile_selector(case["expression"], with_lists=with_lists)
    if selector.failure:
        return selector.failure
    try:
        attributes = read_attributes(device.get("attributes", {}), "", with_lists=with_lists)
    except AttributeValueError as error:
        return Outcome(Truth.RUN_ERROR, str(error))
    capacity = {name: read_capacity_value(amount, "", name) for name, amount in device.get("capacity", {}).items()}
    is_shared = device.get("allowMultipleAllocations", False)
    return selector.evaluate(make_device(case["driver"], attributes, capacity, is_shared=is_shared))
