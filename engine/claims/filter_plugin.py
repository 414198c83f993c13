"""DynamicResources at the extension points of kube-scheduler, for `engine.filters.judge.judge`."""

from datetime import datetime
from typing import Final

from engine.claims.inventory import Inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import ClaimRejectedError, ClaimsOfPod, collect_claims
from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.dynamic_resources import CLAIM_KINDS, NAME, NOTHING_TO_FREE
from engine.filters.verdicts import PluginRefusal, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo

FREED: Final = "deallocation of ResourceClaim completed"
DELETED: Final = "deletion of ResourceClaim completed"
STILL_UNFIT: Final = "still not schedulable"
"""Parts behind the counts, after every node was refused."""


class ClaimsCheck(NodeCheck):
    """DynamicResources after its PreFilter."""

    __slots__ = ("_unavailable", "claims_judge")

    def __init__(self, claims_judge: ClaimsJudge) -> None:
        """Check nodes with a judge."""
        self.claims_judge = claims_judge
        self._unavailable: set[int] = set()

    def judge(self, node: NodeInfo) -> Verdict:
        """Judge one node."""
        verdict = self.claims_judge.judge(node.node)
        self._unavailable.update(verdict.unavailable)
        if verdict.refusal is None and verdict.unjudged:
            return Unjudged(NAME, frozenset({kinds.RESOURCE_SLICE}), verdict.unjudged)
        return verdict.refusal

    @property
    def frees_claim(self) -> bool:
        """Return whether a claim that kept a node away has no other user and is given back."""
        pod_claims = self.claims_judge.pod_claims
        stored = pod_claims.stored
        return any(
            all(consumer.uid == pod_claims.pod.uid for consumer in stored[position].reserved_for)
            and len(stored[position].reserved_for) < 2
            for position in self._unavailable
            if position < len(pod_claims.claims)
        )


class ClaimsPlugin:
    """DynamicResources with an inventory; ``now`` decides whether the binding of a device is overdue."""

    def __init__(self, inventory: Inventory, *, now: datetime | None = None) -> None:
        """Judge with an inventory, whose feature gates count."""
        self._inventory = inventory
        self._now = now

    def check_pre_enqueue(self, cycle: SchedulingCycle) -> PluginRefusal | Unjudged | None:
        """Refuse a pod whose claims do not exist yet, before it enters the queue."""
        pod_claims = self._collect(cycle)
        return pod_claims if isinstance(pod_claims, Unjudged) else pod_claims.pre_enqueue

    def prepare(self, cycle: SchedulingCycle) -> Prepared:
        """Prepare the pod's claims."""
        pod_claims = self._collect(cycle)
        if isinstance(pod_claims, Unjudged):
            return pod_claims
        if pod_claims.pre_filter:
            return pod_claims.pre_filter
        if pod_claims.is_empty:
            return SKIPPED
        return ClaimsCheck(ClaimsJudge(self._inventory, pod_claims, now=self._now))

    def describe_post_filter(self, cycle: SchedulingCycle, prepared: Prepared) -> str:
        """Write what is freed after every node was refused."""
        del cycle
        if not isinstance(prepared, ClaimsCheck):
            return NOTHING_TO_FREE
        if prepared.frees_claim:
            return FREED
        extended = prepared.claims_judge.pod_claims.extended
        return DELETED if extended and extended.prior else STILL_UNFIT

    def _collect(self, cycle: SchedulingCycle) -> ClaimsOfPod | Unjudged:
        inventory = self._inventory
        try:
            pod_claims = collect_claims(inventory, cycle.pod, cycle.request)
        except ClaimRejectedError as error:
            return Unjudged(NAME, frozenset({error.kind}), str(error))
        is_concerned = not pod_claims.is_empty or pod_claims.pre_filter
        # A claim that is allocated names the nodes of its devices itself.
        needed = CLAIM_KINDS if pod_claims.to_allocate else {kinds.RESOURCE_CLAIM}
        unread = inventory.unread & needed
        return Unjudged(NAME, unread) if is_concerned and unread else pod_claims
