"""Release of HAMi that a cluster runs, and what a release makes of a node's handshake.

HAMi up to v2.8 leaves a node out for good whose handshake it has set to ``Deleted_…`` itself: it waits for the device
plugin to report, which plugins since v2.8 do no more. HAMi v2.9 and later reads such a node again.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.hami.node_checks import is_deleted
from engine.hami.vendors import Vendors
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_VERSION: Final = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:\.\d+)?\b")
_IMAGE: Final = re.compile(r"(?:^|/)hami(?:-scheduler)?:(?P<tag>v?\d+\.\d+[^@]*)")


@dataclass(frozen=True, order=True, slots=True)
class HamiRelease:
    """A release of HAMi."""

    major: int = 2
    minor: int = 10

    def __str__(self) -> str:
        """Return the release as HAMi's tags have it, without the patch."""
        return f"v{self.major}.{self.minor}"

    @property
    def leaves_deleted_out(self) -> bool:
        """True if a node with the handshake ``Deleted_…`` is never registered again."""
        return self < HamiRelease(2, 9)


LATEST: Final = HamiRelease()


def parse_release(version: str) -> HamiRelease | None:
    """Parse ``2.8``, ``v2.8.1``; None for another text."""
    form = _VERSION.fullmatch(version)
    return HamiRelease(int(form[1]), int(form[2])) if form else None


def observe_release(pods: Iterable[Mapping[str, Any]]) -> HamiRelease | None:
    """Observe the release by the image of HAMi's scheduler among the pods; None if no image has a version."""
    for pod in pods:
        for container in iterate_objects(pod, "spec", "containers"):
            image = _IMAGE.search(get_text(container, "image"))
            if image and (release := parse_release(image["tag"].partition("-")[0])):
                return release
    return None


def list_deleted_handshakes(nodes: Mapping[str, Mapping[str, Any]], vendors: Vendors) -> dict[str, tuple[str, str]]:
    """List the nodes with a handshake ``Deleted_…``: by name the annotation and its text."""
    deleted: dict[str, tuple[str, str]] = {}
    for name, node in nodes.items():
        annotations = get_object(node, "metadata", "annotations")
        for key in dict.fromkeys(vendor.node.handshake for vendor in vendors if vendor.node.handshake):
            value = annotations.get(key)
            if isinstance(value, str) and is_deleted(value):
                deleted.setdefault(name, (key, value))
    return deleted
