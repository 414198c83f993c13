"""Reasons that kube-scheduler's plugins give for nodes, 1.28 to 1.36: each has an obstacle of its own.

The texts are those of the table, which a scan of the Go modules wrote; an integration test compares it with the module
that the control plane is built from.
"""

from typing import Final

import pytest

from engine.diagnosis.texts import OTHER_WORDS, find_obstacle_of_reason
from tests.support.control_plane.plugin_texts import read_table

OBSTACLES: Final = {
    "node(s) didn't satisfy existing pods anti-affinity rules": "ExistingAntiAffinity",
    "node(s) didn't match pod affinity rules": "PodAffinityMismatch",
    "node(s) didn't match pod anti-affinity rules": "PodAntiAffinityMismatch",
    "node(s) didn't match Pod's node affinity/selector": "AffinityMismatch",
    "node(s) didn't match scheduler-enforced node affinity": "EnforcedAffinity",
    "pod affinity terms conflict": "AffinityMismatch",
    "node(s) didn't match the requested node name": "AffinityMismatch",
    "node(s) didn't have free ports for the requested pod ports": "PortTaken",
    "node(s) were unschedulable": "NodeCordoned",
    "node(s) exceed max volume count": "VolumeLimit",
    "node(s) didn't match pod topology spread constraints": "TopologySpread",
    "node(s) didn't match pod topology spread constraints (missing required label)": "TopologySpread",
    "node(s) didn't find available persistent volumes to bind": "VolumeElsewhere",
    "node(s) did not have enough free storage": "StorageFull",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": "VolumeGone",
    "node(s) had no available disk": "DiskAttached",
    "node(s) had no available volume zone": "VolumeElsewhere",
    "node(s) had volume node affinity conflict": "VolumeElsewhere",
    "node(s) didn't match PersistentVolume's node affinity": "VolumeElsewhere",
    "node(s) had taints that the pod didn't tolerate": "TaintNotTolerated",
    "node(s) had untolerated taint(s)": "TaintNotTolerated",
    "Insufficient %v": "InsufficientResource",
    "Insufficient cpu": "InsufficientResource",
    "Insufficient memory": "InsufficientResource",
    "Insufficient ephemeral-storage": "InsufficientResource",
    "Too many pods": "TooManyPods",
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode": "ClaimOfOnePod",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod":
        "ClaimOfOnePod",
    "resourceclaim not available on the node": "ClaimNotOnNode",
    "resourceclaim must be reallocated": "ClaimNotOnNode",
    "resourceclaim cannot be allocated for the node (unsuitable)": "DevicesNotAllocatable",
    "excluded by device class node filter": "DevicesNotAllocatable",
    "excluded by resource class node filter": "DevicesNotAllocatable",
    "cannot allocate all claims": "DevicesNotAllocatable",
    "cannot fit resource": "DevicesNotAllocatable",
    "cannot schedule extended resource claim": "ClaimOfEarlierAttempt",
    "timed out trying to allocate devices": "ClaimSearchTimedOut",
    "node declared features check failed - unsatisfied requirements: %s": "FeatureMissing",
    "node(s) didn't match Pod's required features": "FeatureMissing",
}  # fmt: skip
"""Obstacle of each reason for a node."""
QUOTED: Final = {
    "a refusal of the pod as such, which `judged_pod` describes by the objects": (
        "pod has unbound immediate PersistentVolumeClaims",
        "waiting for scheduling gates: %v",
        "request %s: device class %s does not exist",
    ),
    "a state between two attempts, which the next one ends": (
        "ResourceClaim unreserved for PodGroup",
        "deallocation of ResourceClaim completed",
        "deletion of ResourceClaim completed",
        "no new claims to deallocate",
        "plugin disabled",
        "resource claim %s is in the process of being allocated",
        "resourceclaim in use",
        "still not schedulable",
        "waiting for the preemption for this pod group to be finished",
        "waiting for the preemption for this pod to be finished",
        "waiting for resource driver to allocate resource",
        "waiting for resource driver to provide information",
        "unallocated immediate resourceclaim",
    ),
    "a preemption that was not tried, in words next to the reasons of nodes": (
        "No preemption victims found for incoming pod",
        "preemption: not eligible due to placement-based pod group scheduling limitation",
        "preemption: not eligible due to workload aware preemption enabled",
        "preemption: pod group for pod not found",
    ),
    "gangs, which the layer of groups describes by the objects": (
        "pod group %q doesn't exist for a workload %q",
        "waiting for minCount pods from a gang to appear in scheduling queue",
        "waiting for pods's pod group %q to appear in scheduling queue",
        "waiting for pods's workload %q to appear in scheduling queue",
    ),
    "objects that no API server takes, or a feature that is off": (
        "PersistentVolume had no name",
        "PersistentVolumeClaim had no name",
        "PersistentVolumeClaim had no pv name and storageClass name",
        "VolumeBindingMode not set for StorageClass %q",
        "Pod has a restartable init container and the SidecarContainers feature is disabled",
        "resource claim %s, request %s: has subrequests, but the DRAPrioritizedList feature is disabled",
        "resource claim %s, request %s: unknown request type",
        "resourceclaim depends on disabled DRAControlPlaneController feature",
        "node(s) had unknown conditions",
        "parsing pod: %+v",
        "asked by caller to stop allocating devices: %v",
    ),
    "claims with parameters of drivers, an alpha interface up to 1.31": (
        "checking structured parameters failed: %v",
        "claim parameters %s not found",
        "class parameters %s not found",
        "generated claim parameters for %s.%s %s not found",
        "generated class parameters for %s.%s %s not found",
        "resource class %s does not exist",
    ),
    "claims for CPU and memory, an alpha interface of 1.36": (
        "claim %s: node-allocatable resource claim not referenced by any container within the pod",
        "node allocatable resource claim %s is already used by another pod",
        "node allocatable resource claim %s shared by multiple pods",
        "pod level request for %s is insufficient to cover the aggregated container and node-allocatable DRA requests",
    ),
    "signatures of pods, which no event shows": (
        "pods with InterPodAffinity are not signable",
        "pods with default topology constraints are not signable",
        "pods with dra resource claims are not signable",
        "pods with topology constraints are not signable",
        "signature disabled when dra extended resources are used in the cluster",
        "signature disabled when dra extended resources enabled",
    ),
}
"""Texts without an obstacle of a node, by the reason why that is enough; an answer quotes them."""
COMPOSED: Final = {
    "node(s) had untolerated taint {gpu: true}": "TaintNotTolerated",
    "node declared features check failed - unsatisfied requirements: GuaranteedQoSPodCPUResize": "FeatureMissing",
}
"""Reasons that the plugins put together of several texts."""


@pytest.mark.parametrize(("text", "code"), (OBSTACLES | COMPOSED).items())
def test_a_reason_of_a_plugin_has_its_obstacle(text: str, code: str) -> None:
    assert find_obstacle_of_reason(text)[0] == code


def test_the_catalogue_lacks_no_text_of_the_plugins() -> None:
    quoted = [text for texts in QUOTED.values() for text in texts]
    lacking = {
        text: versions
        for text, versions in read_table().items()
        if text not in quoted and find_obstacle_of_reason(text)[0] == OTHER_WORDS
    }
    assert lacking == {}


def test_only_texts_of_the_plugins_are_listed() -> None:
    quoted = {text for texts in QUOTED.values() for text in texts}
    assert (OBSTACLES.keys() | quoted) - read_table().keys() == set()


def test_words_of_no_plugin_are_quoted() -> None:
    assert find_obstacle_of_reason("node(s) had a bad day")[0] == OTHER_WORDS
