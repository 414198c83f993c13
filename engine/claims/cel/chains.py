"""Chains of names, keys and indices, such as ``device.attributes["domain"].name``, as functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.claims.cel.attributes import qualify, qualify_if_present
from engine.claims.cel.frames import Evaluate, Frame
from engine.claims.cel.lists import wrap
from engine.claims.cel.values import EvaluationError, OptionalValue, Value


@dataclass(frozen=True, slots=True)
class Link:
    """A step from a value to one inside it. key: the constant key; compute: the way to a key that is none."""

    key: Value
    compute: Evaluate | None
    is_optional: bool = False
    is_test: bool = False


def read_device(frame: Frame) -> Value:
    return frame.device


def read_variable(slot: int, frame: Frame) -> Value:
    value = frame.slots[slot]
    if isinstance(value, EvaluationError):
        raise value
    return value


def make_chain(base: Evaluate, links: Sequence[Link], cost: int) -> Evaluate:
    """Make a function that follows links from a value."""
    if all(link.compute is None and not link.is_optional for link in links):
        keys = [link.key for link in links]

        def follow_keys(frame: Frame) -> Value:
            value = base(frame)
            frame.spend(cost)
            for key in keys:
                value = qualify(value, key)
            return value

        return follow_keys

    def follow(frame: Frame) -> Value:
        value = base(frame)
        frame.spend(cost)
        return _follow(value, links, frame)

    return follow


def _follow(value: Value, links: Iterable[Link], frame: Frame) -> Value:
    is_optional = type(value) is OptionalValue
    if is_optional:
        if not value.has_value:
            return value
        value = value.value
    for link in links:
        key = link.key if link.compute is None else link.compute(frame)
        if link.is_test:
            present = qualify_if_present(value, key)
            return present.has_value
        is_optional = is_optional or link.is_optional
        if not is_optional:
            value = qualify(value, key)
            continue
        present = qualify_if_present(value, key)
        if not present.has_value:
            frame.cost -= 1  # Kubernetes does not count the step to an absent value.
            return present
        value = present.value
    return wrap(value) if is_optional else value
