"""The quantities of a container, and what its changes to the pod have in common."""

from typing import Any

from schemas.json_types import Json


class InvalidRequestError(ValueError):
    """A container requests an impossible amount; the text is HAMi's, and goes into an answer with code 500."""


def amounts_of(container: Json, field: str) -> Json:
    """The quantities under `limits` or `requests`."""
    amounts = (container.get("resources") or {}).get(field)
    return amounts if isinstance(amounts, dict) else {}


def quantity_of(container: Json, name: str) -> Any:
    """The container's quantity of a resource: of its limits, else of its requests; None where neither names it."""
    for field in ("limits", "requests"):
        amounts = amounts_of(container, field)
        if name and name in amounts:
            return amounts[name]
    return None


def set_quantity(container: Json, field: str, name: str, quantity: str) -> None:
    """Write a quantity, as text, as Kubernetes does."""
    resources = container.get("resources") or {}
    container["resources"] = {**resources, field: {**amounts_of(container, field), name: quantity}}


def append_variable(container: Json, name: str, value: str) -> None:
    # Go leaves an empty value out, and so does what Kubernetes stores.
    variable = {"name": name, "value": value} if value else {"name": name}
    container["env"] = [*(container.get("env") or ()), variable]


def annotate(pod: Json, key: str, value: str) -> None:
    metadata = pod.get("metadata") or {}
    pod["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}


def annotation_of(pod: Json, key: str) -> str | None:
    found: str | None = ((pod.get("metadata") or {}).get("annotations") or {}).get(key)
    return found
