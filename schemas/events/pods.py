"""Origin of a pod."""

from typing import Annotated

from pydantic import Field

from .base import Model
from .field_types import Integer, Moment


class Owner(Model):
    """An object that owns a pod, or owns the pod's owner."""

    kind: Annotated[str, Field(min_length=1)]
    """``ReplicaSet``, ``Job``, ``PyTorchJob``, …"""
    name: Annotated[str, Field(min_length=1)]
    api_version: str = ""
    """Its group and version, as in ``batch/v1``; empty where it is derived from a name."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class PodDescription(Model):
    """Origin of a pod and who waits for it, from the pod's object."""

    created_at: Moment | None = None
    """Creation time of the pod."""
    owners: list[Owner] = Field(default_factory=list)
    """The pod's controller, that one's controller, and so on, as far as they are known. The last is the workload."""
    pod_group: str = ""
    """The name of the group of pods that are scheduled together."""
    queue: str = ""
    priority_class: str = ""
    priority: Integer | None = None
    service_account: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the pod that the configuration names."""

    @property
    def workload(self) -> str:
        """The owner that nobody else owns, as ``Job/train``; empty for a pod of its own."""
        return str(self.owners[-1]) if self.owners else ""
