"""Identity of the publisher: this scheduler, in its cluster."""

from typing import NamedTuple


class Identity(NamedTuple):
    """Name of a scheduler that is unique everywhere: two clusters may both have a ``hami-scheduler``."""

    cluster: str
    scheduler: str
    """Name in the pods' ``spec.schedulerName``."""
