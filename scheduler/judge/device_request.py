"""What one container asks of one card, ready for the checks."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hami.requests import UNSET_PERCENT
from scheduler.judge.pod_annotations import Wishes
from scheduler.judge.request import ContainerRequest

_WHOLE_CARD = 100

Amount = TypeVar("Amount", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True)
class Ask:
    """count cards, each with cores (percent, at most 100) and memory: MiB, or a percentage of the card's own total.

    is_mutex: only cards that nobody uses. numa_bind: all cards on one NUMA node. collects_all: topology-aware, every
    card that would do is collected before some are taken.
    """

    count: int
    memory_mib: int
    percentage: int
    cores: int
    is_mutex: bool
    numa_bind: bool
    collects_all: bool

    def memory_of(self, total: Amount) -> Amount:
        """MiB asked of a card, or of each card of an array, with `total` MiB."""
        if self.memory_mib > 0 or self.percentage == UNSET_PERCENT:
            return total * 0 + self.memory_mib
        return total * self.percentage // 100

    @property
    def wants_whole_card(self) -> bool:
        return self.cores == _WHOLE_CARD


def ask_of(request: ContainerRequest, wishes: Wishes) -> Ask:
    policies = policy_words(wishes.device_policy)
    collects_all = "topology-aware" in policies
    return Ask(
        request.count,
        request.memory_mib,
        request.memory_percentage,
        min(request.cores, _WHOLE_CARD),
        is_mutex="mutex" in policies,
        numa_bind=wishes.numa_bind,
        collects_all=collects_all,
    )


def policy_words(policy: str) -> tuple[str, ...]:
    """A comma chain of policies as words."""
    return tuple(word for part in policy.split(",") if (word := part.strip()))
