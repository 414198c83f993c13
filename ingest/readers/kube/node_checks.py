"""Checks how nodes register their devices with an unmodified HAMi: events when the problems of a node change."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from engine.hami.node_checks import (
    RegistrationProblem,
    VendorRegistration,
    check_registrations,
    list_vendor_registrations,
)
from engine.hami.node_events import to_node_checked
from engine.hami.node_registration import read_node
from engine.hami.vendor_catalog import list_vendors
from engine.hami.vendors import Vendor
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.events import DEFAULT_CLUSTER, NodeChecked

CHECK_SECONDS: Final = 15.0
"""Pause between two checks, the same as between HAMi's scheduler's looks at its nodes."""
HANDSHAKE_LIMIT: Final = timedelta(seconds=300)


class _NodeCheckState(NamedTuple):
    registrations: Sequence[VendorRegistration]
    cause: str
    """The reason that its registration can't be used."""


class HamiNodeChecks:
    """Nodes that carry none of HAMi's annotations are not checked: another device plugin may serve them.

    limit: an older handshake is a problem; zero switches that check off.
    """

    def __init__(self, cluster: str = DEFAULT_CLUSTER, limit: timedelta = HANDSHAKE_LIMIT) -> None:
        self._cluster, self._limit = cluster, limit
        self._nodes: dict[str, _NodeCheckState] = {}
        self._reported: dict[str, list[tuple[str, str]]] = {}
        """Code and vendor of the problems that were reported last."""

    def check_node(self, node: Mapping[str, Any], now: datetime) -> Iterator[NodeChecked]:
        """Check the node's present state; yields an event if its problems changed."""
        name, annotations = get_text(node, "metadata", "name"), get_object(node, "metadata", "annotations")
        vendors = list_vendors(annotations)
        marked = {vendor.word for vendor in vendors if _is_marked(vendor, annotations)}
        if not name or not (marked or name in self._nodes):
            return
        problem = read_node(node, vendors).problem
        # HAMi's scheduler writes its requests in local time, and its containers run in UTC.
        all_registrations = list_vendor_registrations(node, vendors, UTC)
        registrations = [registration for registration in all_registrations if registration.vendor in marked]
        self._nodes[name] = _NodeCheckState(registrations, str(problem or ""))
        yield from self._check(name, now)

    def forget(self, name: str, now: datetime) -> Iterator[NodeChecked]:
        self._nodes.pop(name, None)
        if self._reported.pop(name, None):
            yield to_node_checked(self._cluster, name, now, [])

    def check(self, now: datetime) -> Iterator[NodeChecked]:
        """Check all nodes again, because handshakes grow old with time."""
        for name in self._nodes:
            yield from self._check(name, now)

    def _check(self, name: str, now: datetime) -> Iterator[NodeChecked]:
        node = self._nodes[name]
        problems: list[RegistrationProblem] = list(
            check_registrations(node.registrations, node.cause, now, self._limit)
        )
        # Without the message, which holds the handshake's age.
        codes = [(problem.code, problem.vendor) for problem in problems]
        if codes != self._reported.get(name, []):
            self._reported[name] = codes
            yield to_node_checked(self._cluster, name, now, problems)


def _is_marked(vendor: Vendor, annotations: Mapping[str, Any]) -> bool:
    return any(key in annotations for key in (vendor.node.register, vendor.node.handshake) if key)
