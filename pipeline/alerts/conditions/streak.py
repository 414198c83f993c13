"""An unbroken series of occurrences. Pure."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class Streak:
    started_at: datetime
    latest_at: datetime
    count: int = 0

    @classmethod
    def starting(cls, at: datetime) -> "Streak":
        """A streak without an occurrence yet; ``extend`` adds the first one too."""
        return cls(at, at)

    def extend(self, at: datetime) -> None:
        # Records of several partitions: the next one read may be a little older.
        self.latest_at = max(self.latest_at, at)
        self.count += 1
