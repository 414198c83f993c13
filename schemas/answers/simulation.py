"""The JSON that the API gives to people about a pod that does not exist yet."""

from typing import Final, Literal

from pydantic import Field

from .attempts import FullSchedulerLog
from .base import Answer
from .diagnosis import Diagnosis, InBothLanguages
from .suggestions import Suggestions


class SimulationNote(Answer):
    """Something that is no obstacle and that the reader has to know: what admission changed, what nobody reads."""

    code: str
    text: InBothLanguages


class FilteredNodes(Answer):
    """Nodes that kube-scheduler's filters refuse for one reason; a node with several reasons is in several."""

    code: str = Field(description="A branch of the diagnosis, such as TaintNotTolerated.")
    sentence: InBothLanguages
    nodes: list[str] = Field(description="At most 20.")
    node_count: int


class SimulatedDevice(Answer):
    """A device of the chosen node, as it was judged for one container. Use is that before the pod."""

    container: str
    device_index: int
    uuid: str
    model: str
    verdict: str = Field(description="picked, fits, not reached, or the reason code it was refused for.")
    memory_mib: int = Field(description="Memory that the container gets; 0 of a device that it does not get.")
    cores_percent: int = Field(description="Cores that the container gets, as a percentage of the device.")
    memory_total_mib: int
    memory_used_mib: int
    cores_total_percent: int
    cores_used_percent: int
    slots_total: int
    slots_used: int


class SimulatedPod(Answer):
    """One of several pods that were placed one after the other."""

    namespace: str
    name: str
    node: str | None
    uuids: list[str] = Field(description="Devices that its containers get.")
    obstacle: str = Field(description="Code of the main obstacle; empty where it fits.")


class Simulation(Answer):
    """Simulated placement of a pod. Nothing was written, and no scheduler was asked."""

    node: str | None = Field(description="Null where it fits no node, or where only scores choose among several.")
    state: Literal["fits", "refused", "open"] = Field(
        description="open: objects that decide are not known, and are named in a note."
    )
    sentence: InBothLanguages
    nodes: int = Field(description="Nodes of the cluster.")
    fit_nodes: int = Field(description="Nodes where the pod fits.")
    fitting: list[str] = Field(description="Names of nodes where the pod fits; at most 20.")
    filtered: list[FilteredNodes] = Field(
        description="Nodes that kube-scheduler's filters refuse, by reason; also where the pod fits on others."
    )
    devices: list[SimulatedDevice] = Field(description="Devices of the chosen node.")
    device_policy: str = Field(description="Policy by which devices were chosen; empty without a device.")
    policy_annotation: str = Field(description="Annotation of the pod that names the policy; empty for the default.")
    notes: list[SimulationNote]
    pods: list[SimulatedPod] = Field(description="All pods in their order, where several were placed; otherwise empty.")
    schedulerlog: FullSchedulerLog | None = Field(
        description="Log of the simulated attempt; null where HAMi's scheduler was not asked: the pod requests no "
        "device, or no node passes kube-scheduler's filters."
    )
    diagnosis: Diagnosis | None = Field(description="Diagnosis of the pod; of several pods, of the first that waits.")
    suggestions: Suggestions | None = Field(
        description="Suggestions for the simulated attempt; `attempt` is empty. Null where the pod fits without a "
        "device."
    )


ANSWERS: Final = (Simulation,)
"""Each has a JSON Schema of its own."""
