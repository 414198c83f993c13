"""Result of one attempt, complete in itself: later changes of the cluster do not reach into it.

`decide` makes it, `engine.fit.events` turns it into events, the HTTP layer answers from it, and `reserve` holds its
devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.node_entry import NodeFragment, RegisteredKind
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.judgement import ContainerJudgement, NodeRefusal
from engine.fit.judge.request.pod_request import VendorRequest


class SchedulingPolicy(NamedTuple):
    """Policies of HAMi's flags.

    node: `--node-scheduler-policy`, binpack or spread. device: `--gpu-scheduler-policy`, one word or a comma chain.
    """

    node: str = "binpack"
    device: str = "spread"


class MigSlice(NamedTuple):
    """Part of a MIG device that a grant takes: a profile at a placement (start and size in memory slices)."""

    profile: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Device given to one container. `type`: the word of the annotation, the vendor's ("NVIDIA"); for AMD the model."""

    uuid: str
    type: str
    memory_mib: int
    cores: int
    mig: MigSlice | None = None
    index: int = 0
    slots: int = 1
    minor: str = ""
    profile: tuple[str, str] = ("", "")
    """Name and number of an Enflame device's part; minor: that device's number."""


class Allocation(NamedTuple):
    """Devices of the chosen node: one tuple of grants per request, empty where the container requests none."""

    node: str
    containers: tuple[tuple[Grant, ...], ...]


@dataclass(frozen=True, eq=False)
class Decision:
    """Decision on one pod against n offered nodes, in the order they were offered."""

    containers: tuple[VendorRequest, ...]  # init containers first, in pod order; one each, or one per vendor
    node_names: tuple[str, ...]  # (n,)
    ids: NDArray[np.int64]  # (n,) keys of fragments; -1: unregistered, or withheld
    fragments: Mapping[int, NodeFragment]  # of all registered nodes
    revision: NDArray[np.int64]  # (n,) of the state of each node's devices; -1: unregistered
    node_verdict: NDArray[np.uint8]  # (n,) index into verdict_codes.NODE_VERDICTS
    score: NDArray[np.float32]  # (n,) HAMi's node score; 0 where the node does not fit
    score_terms: Mapping[str, NDArray[np.float32]]  # (n,) each; what the score is the sum of
    refused_by: NDArray[np.int64]  # (n,) index of the container that refused the node, -1
    refusal: NDArray[np.int64]  # (n,) index into refusals, -1 for nodes that fit
    refusals: tuple[NodeRefusal, ...]  # distinct
    judgements: tuple[ContainerJudgement, ...]
    kinds: tuple[RegisteredKind, ...]  # the table behind ContainerJudgement.kind
    node_policy: str
    device_policy: str
    chosen: str | None
    allocation: Allocation | None
    annotations: Mapping[str, str] = field(default_factory=dict)  # without hami.io/vgpu-time, which needs the clock
    labels: Mapping[str, str] = field(default_factory=dict)
    node_causes: Mapping[str, str] = field(default_factory=dict)  # of offered nodes: registration broken, or withheld

    def get_fragment(self, node: int) -> NodeFragment | None:
        """Get the registration and usage of the offered node at this position; None where it is not registered."""
        return self.fragments.get(int(self.ids[node]))

    @cached_property
    def refusal_texts(self) -> tuple[str, ...]:
        """HAMi's reason string of each distinct refusal."""
        return tuple(refusal.text for refusal in self.refusals)

    def list_failed_nodes(self) -> dict[str, str]:
        """List HAMi's reason string by name of each node that does not fit."""
        texts = self.refusal_texts
        return {
            name: texts[index] for name, index in zip(self.node_names, self.refusal.tolist(), strict=True) if index >= 0
        }

    def list_fitting(self) -> list[tuple[str, float]]:
        """List (node, score) of every node that fits, the chosen one included, in offered order."""
        where = np.flatnonzero(self.node_verdict >= verdict_codes.NODE_FITS).tolist()
        return [(self.node_names[i], float(self.score[i])) for i in where]


class NotOurs(NamedTuple):
    """Pod that requests no device that this scheduler serves; every offered node goes back unchanged."""

    containers: tuple[VendorRequest, ...]


class Failed(NamedTuple):
    """Attempt that ended before any node was judged. error: HAMi's text, for the reply's Error."""

    containers: tuple[VendorRequest, ...]
    error: str
    left_out: int = 0
    """Number of containers that the pod has beyond these."""
