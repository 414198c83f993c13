"""Releases of HAMi, and the rules that changed after v2.10, by the release that brings them.

The rules of v2.10 are the default everywhere; `engine.fit.device_config.follow_release` gives the table of vendors
those of another release. docs/hami-differences.md says for each rule from which source it is, and what was compared.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.hami.go_values import to_mapping

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
        """True if a node whose handshake HAMi has set to ``Deleted_…`` is never registered again.

        HAMi up to v2.8 waits for the device plugin to report, which plugins since v2.8 do no more; v2.9 and later read
        such a node again.
        """
        return self < HamiRelease(2, 9)


LATEST: Final = HamiRelease()
"""Release of which every rule was compared."""


def parse_release(version: str) -> HamiRelease | None:
    """Parse ``2.8``, ``v2.8.1``; None for another text."""
    form = _VERSION.fullmatch(version)
    return HamiRelease(int(form[1]), int(form[2])) if form else None


def observe_release(pods: Iterable[Mapping[str, Any]]) -> HamiRelease | None:
    """Observe the release by the image of HAMi's scheduler among the pods; None if no image has a version."""
    for pod in pods:
        containers = to_mapping(pod.get("spec")).get("containers")
        for container in containers if isinstance(containers, list) else ():
            image = _IMAGE.search(str(to_mapping(container).get("image", "")))
            if image and (release := parse_release(image["tag"].partition("-")[0])):
                return release
    return None


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """Rules of one release where they differ from v2.10's.

    counts_sidecars: init containers with `restartPolicy: Always` hold their devices next to the app containers.
    takes_smallest_quota: of several ResourceQuotas the smallest limit counts, and none with a scope; v2.10 takes the
    latest. keeps_policies: an unknown word for a policy leaves the scheduler's own policy in force. denies_unread: a
    request that can't be read refuses the pod. scores_requests: what is requested counts in the scores of all devices,
    not only of those that are named like their vendor. names_hcu: Hygon's devices are HCU, no longer DCU. counts_slots:
    the fifth field of a device in an annotation is the number of its slots. denies_damaged: a device without a UUID or
    type, or with a negative amount, makes the annotation unreadable. leaves_remote_out: NVIDIA's devices of the mode
    `remote` don't count. locks_for_init: a bind takes the node lock for devices of init containers too.
    """

    counts_sidecars: bool = False
    takes_smallest_quota: bool = False
    keeps_policies: bool = False
    denies_unread: bool = False
    scores_requests: bool = False
    names_hcu: bool = False
    counts_slots: bool = False
    denies_damaged: bool = False
    leaves_remote_out: bool = False
    locks_for_init: bool = False


RULES_OF_2_10: Final = ReleaseRules()
RULES: Final[dict[HamiRelease, ReleaseRules]] = {
    HamiRelease(2, 10): RULES_OF_2_10,
    HamiRelease(2, 11): ReleaseRules(
        counts_sidecars=True,
        takes_smallest_quota=True,
        keeps_policies=True,
        denies_unread=True,
        scores_requests=True,
        names_hcu=True,
        counts_slots=True,
        denies_damaged=True,
        leaves_remote_out=True,
        locks_for_init=True,
    ),
}
"""Rules by the first release that has them."""


def choose_rules(release: HamiRelease) -> ReleaseRules:
    """Choose the rules of a release: those of the newest release in the table that is not newer."""
    return RULES[max(_list_older(release), default=min(RULES))]


def _list_older(release: HamiRelease) -> Iterable[HamiRelease]:
    return (first for first in RULES if first <= release)
