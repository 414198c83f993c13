"""Quantities of a container, and the changes to pods that several vendors share."""

from typing import Any

from schemas.json_types import Json


class InvalidRequestError(ValueError):
    """A container requests an impossible amount; the text is HAMi's, and goes into an answer with code 500."""


def get_amounts(container: Json, field: str) -> Json:
    """Return the quantities under `limits` or `requests`."""
    amounts = (container.get("resources") or {}).get(field)
    return amounts if isinstance(amounts, dict) else {}


def get_quantity(container: Json, name: str) -> Any:
    """Return the container's quantity of a resource: of its limits, else of its requests; None where neither names
    it."""
    for field in ("limits", "requests"):
        amounts = get_amounts(container, field)
        if name and name in amounts:
            return amounts[name]
    return None


def set_quantity(container: Json, field: str, name: str, quantity: str) -> None:
    """Write a quantity, as text, as Kubernetes does."""
    resources = container.get("resources") or {}
    container["resources"] = {**resources, field: {**get_amounts(container, field), name: quantity}}


def append_variable(container: Json, name: str, value: str) -> None:
    # Go leaves an empty value out, and so does what Kubernetes stores.
    variable = {"name": name, "value": value} if value else {"name": name}
    container["env"] = [*(container.get("env") or ()), variable]


def annotate(pod: Json, key: str, value: str) -> None:
    metadata = pod.get("metadata") or {}
    pod["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}


def get_annotation(pod: Json, key: str) -> str | None:
    value: str | None = ((pod.get("metadata") or {}).get("annotations") or {}).get(key)
    return value
