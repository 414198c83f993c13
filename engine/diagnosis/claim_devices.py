"""Devices of the requests of a pod's claims over all nodes: by reason, with the values of some of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.counters import CounterShortage, list_counter_users
from engine.claims.equal_nodes import NodeExplainer
from engine.claims.explanation import ExplainedDevice, PooledDevice
from engine.claims.findings import DeviceFinding, describe_counter, describe_holder
from engine.claims.inventory import Inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.judgement import DeviceReason
from engine.claims.requests import ClaimRequest
from engine.claims.slices import DeviceId
from engine.diagnosis.claim_findings import write_finding
from engine.diagnosis.outcome import DeviceExample, DevicesOfReason
from engine.snapshot.nodes import Node

MAX_EXPLAINED: Final = 200
"""Limit of the nodes whose devices are explained, equal ones counted once."""
MAX_EXAMPLES: Final = 8
"""Limit of the devices that are named for one reason."""
MAX_USERS: Final = 3
"""Limit of the claims that are named for one counter."""
_RANKS: Final = {reason: rank for rank, reason in enumerate(DeviceReason)}

RequestKey = tuple[str, str]
"""Claim and request."""


@dataclass(frozen=True, slots=True)
class _Example:
    """A device with the finding that many have alike."""

    id: DeviceId
    node: str
    finding: DeviceFinding


@dataclass(slots=True)
class RequestTally:
    """Devices of one request, each once, although several nodes may reach it."""

    request: ClaimRequest
    wanted: int | None
    reasons: dict[DeviceId, DeviceReason] = field(default_factory=dict)
    _examples: dict[DeviceReason, dict[str, _Example]] = field(default_factory=dict)
    _counts: Counter[tuple[DeviceReason, str]] = field(default_factory=Counter)

    def add(self, pooled: PooledDevice, node: str, device: ExplainedDevice, inventory: Inventory) -> None:
        """Count a device; ``device``: the explanation of it, or of an equal one."""
        device_id = pooled.id
        if not device.findings or device_id in self.reasons:
            return
        finding = _find_own_holder(device.findings[0], pooled, inventory)
        reason = self.reasons[device_id] = finding.reason
        self._counts[reason, finding.text] += 1
        self._examples.setdefault(reason, {}).setdefault(finding.text, _Example(device_id, node, finding))

    def list_reasons(self) -> list[DevicesOfReason]:
        """List the devices by reason, the nearest to a fit first."""
        # What another kind of device lacks does not matter to the reader.
        counts = Counter(self.reasons.values())
        return [
            DevicesOfReason(reason.value, counts[reason], self._list_examples(reason))
            for reason in sorted(counts, key=_RANKS.__getitem__, reverse=True)
        ]

    def _list_examples(self, reason: DeviceReason) -> list[DeviceExample]:
        examples = sorted(self._examples[reason].items(), key=lambda item: -self._counts[reason, item[0]])
        return [
            DeviceExample(
                "/".join(example.id),
                example.node,
                write_finding(example.finding),
                self._counts[reason, text],
                _get_namespace(example.finding),
            )
            for text, example in examples[:MAX_EXAMPLES]
        ]


def _find_own_holder(finding: DeviceFinding, pooled: PooledDevice, inventory: Inventory) -> DeviceFinding:
    """Find who has this device or its counters, where the finding is that of a device of an equal node."""
    if isinstance(finding.cause, DeviceHolder):
        holder = inventory.allocated.find_holder(pooled.id)
        return describe_holder(holder) if holder else finding
    if isinstance(finding.cause, CounterShortage) and finding.cause.counter:
        users = list_counter_users(inventory, pooled.pool, finding.cause)
        # An example has one namespace, by which it is redacted.
        named = [user for user in users if user.claim.namespace == users[0].claim.namespace]
        return describe_counter(replace(finding.cause, users=tuple(named[:MAX_USERS])))
    return finding


def _get_namespace(finding: DeviceFinding) -> str:
    match finding.cause:
        case DeviceHolder():
            return finding.cause.claim.namespace
        case CounterShortage(users=(first, *_)):
            return first.claim.namespace
    return ""


def collect_request_devices(judge: ClaimsJudge, nodes: Iterable[Node]) -> Mapping[RequestKey, RequestTally]:
    """Collect the devices of every request for which some are refused."""
    explainer = NodeExplainer(judge, MAX_EXPLAINED)
    tallies: dict[RequestKey, RequestTally] = {}
    for node in nodes:
        explanation = explainer.explain(node)
        for explained in explanation.explained.requests if explanation else ():
            key = explained.claim, explained.request.full_name
            tally = tallies.setdefault(key, RequestTally(explained.request, explained.wanted))
            for pooled, device in zip(explanation.devices if explanation else (), explained.devices, strict=False):
                tally.add(pooled, node.name, device, judge.inventory)
    return {key: tally for key, tally in tallies.items() if tally.reasons}
