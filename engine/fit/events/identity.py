"""Who publishes: this scheduler, in its cluster."""

from typing import NamedTuple


class Identity(NamedTuple):
    """Names a scheduler everywhere: two clusters may both have one that is called ``hami-scheduler``."""

    cluster: str
    scheduler: str
    """As in the pods' ``spec.schedulerName``."""
