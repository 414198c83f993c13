"""Fields of an attempt for lists of waiting pods."""

from .base import Model, Request
from .field_types import Count, Words


class PodWait(Model):
    """Obstacle of a pod that an attempt placed nowhere: on every node, and on the nearest ones.

    The worker adds it when it publishes the attempt, so that a list of thousands of waiting pods reads no attempt.
    """

    code: str = ""
    """The main obstacle's code, as in the pod's diagnosis; empty where none is known, as while a bind has no result."""
    sentence_en: str = ""
    """The obstacle in a sentence, by the attempt alone: without what only the devices' numbers say."""
    sentence_zh: str = ""
    devices: Count = 0
    """The most devices that the pod holds at a time."""
    models: Words
    """The models of the devices that were judged, as they are registered; sorted."""
    pools: Words
    """The pools of the nodes that were judged; sorted."""
    nearest_nodes: Words
    """Nodes that lack the fewest devices, at most ``MAX_NEAREST`` of them, all with the same refusal."""
    reasons: dict[str, Count]
    """Reasons of their refusal: reason code to number of devices."""
    asked: Request | None = None
    """Refused request; null where several containers request devices and the source does not name the refused one."""
    missing_devices: Count | None = None
    """Number of devices that each of them lacks; null where the source does not count devices."""
