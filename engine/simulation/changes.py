"""The smallest changes of a pod and of nodes after which the pod fits, each proved by judging again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.suggestions.answer import ProvedSuggestions
from engine.suggestions.ask import Constraint
from schemas.answers.suggestions import SuggestedChange


@dataclass(frozen=True, slots=True)
class ProvedChanges:
    """Changes of devices and requests by HAMi's fit, and changes of what the filters look at."""

    of_devices: ProvedSuggestions = field(default_factory=lambda: ProvedSuggestions([], [], fits=True))
    of_nodes: Sequence[SuggestedChange] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Pods by UID."""
    unknown: Sequence[str] = ()

    @property
    def excluded_by(self) -> list[Constraint]:
        """Smallest set of constraints that keeps the pod from the nodes that the filters let pass."""
        return self.of_devices.excluded_by
