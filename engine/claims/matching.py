"""Selectors of classes and requests on devices; each is evaluated once for devices that agree in what it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.cel.attributes import make_device
from engine.claims.cel.parts import FailedPart
from engine.claims.cel.selector import Outcome, Selector, Truth, compile_selector
from engine.claims.cel.values import Value
from engine.claims.device_keys import PropertyNames, list_names, make_key
from engine.claims.device_values import AttributeValueError, read_attributes, read_capacity_value
from engine.claims.inventory import Inventory
from engine.claims.requests import ClaimRequest
from engine.claims.slices import Slice, SliceDevice

EvaluationKey = tuple[str, str, bool, bytes]

_MAX_REMEMBERED: Final = 200_000
_MAX_EXPLAINED: Final = 20_000
_MAX_SELECTORS: Final = 64


class SelectorError(Exception):
    """A selector that fails on a device, which ends kube-scheduler's attempt; the text is kube-scheduler's own."""


class SelectorUnjudgedError(Exception):
    """A selector that is not judged here; the text names it and the reason."""


@dataclass(frozen=True, slots=True)
class SelectorOrigin:
    """A selector, with its owner and position there in the words of verdicts: ``class gpu: selector #0``."""

    text: str
    selector: Selector


class DeviceMatcher:
    """Evaluates the selectors of one judgement, and remembers the outcomes."""

    def __init__(self, inventory: Inventory) -> None:
        """Evaluate on devices of an inventory."""
        self._inventory = inventory
        self._with_lists = inventory.gates.list_attributes
        self._outcomes: dict[EvaluationKey, Outcome] = {}
        self._parts: dict[EvaluationKey, Sequence[FailedPart]] = {}
        self._selectors: dict[str, Selector] = {}
        self._names: dict[tuple[str, str], PropertyNames | None] = {}

    def list_origins(self, claim_title: str, request: ClaimRequest) -> list[SelectorOrigin]:
        """List the selectors of a request, those of its class first, as kube-scheduler goes through them."""
        return self.list_class_origins(request.class_name) + self.list_request_origins(claim_title, request)

    def list_class_origins(self, class_name: str) -> list[SelectorOrigin]:
        """List the selectors of a class; none for a class that is missing."""
        device_class = self._inventory.classes.get(class_name)
        return self._list(f"class {class_name}", device_class.selectors if device_class else ())

    def list_request_origins(self, claim_title: str, request: ClaimRequest) -> list[SelectorOrigin]:
        """List the selectors of a request itself."""
        return self._list(f"claim {claim_title}", request.selectors)

    def _list(self, owner: str, texts: Sequence[str | None]) -> list[SelectorOrigin]:
        return [
            SelectorOrigin(f"{owner}: selector #{position}", self._compile(text or ""))
            for position, text in enumerate(texts)
        ]

    def _compile(self, text: str) -> Selector:
        selector = self._selectors.get(text)
        if selector is None:
            if len(self._selectors) >= _MAX_SELECTORS:
                self._selectors.clear()
            selector = self._selectors[text] = compile_selector(text, with_lists=self._with_lists)
        return selector

    def selects(self, origins: Sequence[SelectorOrigin], slice_: Slice, device: SliceDevice) -> bool:
        """Return whether a device passes all selectors.

        Raises SelectorError or SelectorUnjudgedError for the first one without an outcome.
        """
        for origin in origins:
            outcome = self.evaluate(origin.selector, slice_, device)
            if outcome.truth is Truth.TRUE:
                continue
            if outcome.truth is Truth.FALSE:
                return False
            raise _describe_error(origin, outcome)
        return True

    def evaluate(self, selector: Selector, slice_: Slice, device: SliceDevice) -> Outcome:
        """Evaluate a selector on a device."""
        if selector.failure is not None:
            return selector.failure
        key = self._make_key(selector, slice_, device)
        if key is None:
            return self._evaluate(selector, slice_, device)
        outcome = self._outcomes.get(key)
        if outcome is None:
            if len(self._outcomes) > _MAX_REMEMBERED:
                self._outcomes.clear()
            outcome = self._outcomes[key] = self._evaluate(selector, slice_, device)
        return outcome

    def explain(self, selector: Selector, slice_: Slice, device: SliceDevice) -> Sequence[FailedPart]:
        """Explain which parts of a selector a device fails."""
        key = self._make_key(selector, slice_, device)
        if key is None:
            return self._explain(selector, slice_, device)
        parts = self._parts.get(key)
        if parts is None:
            if len(self._parts) > _MAX_EXPLAINED:
                self._parts.clear()
            parts = self._parts[key] = self._explain(selector, slice_, device)
        return parts

    def _make_key(self, selector: Selector, slice_: Slice, device: SliceDevice) -> EvaluationKey | None:
        """Make a key of everything that a selector reads; None for a device on which it may fail unread."""
        if not device.is_evaluable:
            return None
        is_shared = not device.is_plain and self._inventory.get_details(slice_, device).is_shared
        names = self._find_names(selector, slice_.driver)
        return selector.text, slice_.driver, is_shared, make_key(names, device)

    def _find_names(self, selector: Selector, driver: str) -> PropertyNames | None:
        if selector.reads is None:
            return None
        key = selector.text, driver
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = list_names(selector.reads.paths, driver)
        return names

    def _evaluate(self, selector: Selector, slice_: Slice, device: SliceDevice) -> Outcome:
        value = self._make_value(selector, slice_, device)
        return value if isinstance(value, Outcome) else selector.evaluate(value)

    def _explain(self, selector: Selector, slice_: Slice, device: SliceDevice) -> Sequence[FailedPart]:
        value = self._make_value(selector, slice_, device)
        return () if isinstance(value, Outcome) else selector.explain(value)

    def _make_value(self, selector: Selector, slice_: Slice, device: SliceDevice) -> Value | Outcome:
        """Return a device as a value of CEL, or the outcome of every selector on it if it is no such value."""
        attributes, capacity = device.attributes, device.capacity
        names = self._find_names(selector, slice_.driver)
        if names is not None and device.is_evaluable:
            # Others are not read, and a cluster has many devices.
            attributes = {name: attributes[name] for name in names.attributes if name in attributes}
            capacity = {name: capacity[name] for name in names.capacity if name in capacity}
        try:
            values = read_attributes(attributes, device.path, with_lists=self._with_lists)
        except AttributeValueError as error:
            return Outcome(Truth.RUN_ERROR, str(error))
        amounts = {name: read_capacity_value(amount, device.path, name) for name, amount in capacity.items()}
        is_shared = not device.is_plain and self._inventory.get_details(slice_, device).is_shared
        return make_device(slice_.driver, values, amounts, is_shared=is_shared)


def _describe_error(origin: SelectorOrigin, outcome: Outcome) -> Exception:
    match outcome.truth:
        case Truth.COMPILE_ERROR:
            return SelectorError(f"{origin.text}: CEL compile error: {outcome.text}")
        case Truth.RUN_ERROR:
            return SelectorError(f"{origin.text}: CEL runtime error: {outcome.text}")
    return SelectorUnjudgedError(f"{origin.text} is not judged: {outcome.text}")
