"""DynamicResources (DRA) among the filters: the interface that `engine.claims` implements."""

from typing import Final, Protocol

from engine.filters.cycle import SKIPPED, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, Unjudged
from engine.snapshot import kinds
from engine.snapshot.fields import read_list

NAME: Final = "DynamicResources"
CLAIM_KINDS: Final = frozenset((kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS))
NOTHING_TO_FREE: Final = "no new claims to deallocate"


class DynamicResourcesPlugin(Protocol):
    """DynamicResources at each of kube-scheduler's extension points."""

    def check_pre_enqueue(self, cycle: SchedulingCycle) -> PluginRefusal | Unjudged | None:
        """Refuse a pod whose claims do not exist yet, before it enters the queue."""

    def prepare(self, cycle: SchedulingCycle) -> Prepared:
        """Prepare the pod's claims (PreFilter); the check judges node after node."""

    def describe_post_filter(self, cycle: SchedulingCycle, prepared: Prepared) -> str:
        """Write the plugin's part behind the counts, after every node was refused."""


class WithoutClaims:
    """DynamicResources for pods without claims; the claims of others stay unjudged."""

    def check_pre_enqueue(self, cycle: SchedulingCycle) -> PluginRefusal | Unjudged | None:
        """Let every pod into the queue whose claims need no look."""
        return Unjudged(NAME, CLAIM_KINDS) if _has_claims(cycle) else None

    def prepare(self, cycle: SchedulingCycle) -> Prepared:
        """Skip pods without claims."""
        return Unjudged(NAME, CLAIM_KINDS) if _has_claims(cycle) else SKIPPED

    def describe_post_filter(self, cycle: SchedulingCycle, prepared: Prepared) -> str:
        """Write that there is nothing to free."""
        del cycle, prepared
        return NOTHING_TO_FREE


def _has_claims(cycle: SchedulingCycle) -> bool:
    return bool(read_list(cycle.spec, "resourceClaims", "spec"))
