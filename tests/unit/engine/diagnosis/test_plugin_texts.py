"""Reasons that kube-scheduler's plugins give for nodes, 1.28 to 1.36: each has an obstacle of its own.

The texts are the constants and statuses of ``pkg/scheduler/framework/plugins`` in the Go modules ``k8s.io/kubernetes``
1.28.15, 1.30.14, 1.32.9, 1.34.1, 1.35.0 and 1.36.3. Left out are those that need an absurd object (a PersistentVolume
without a name), failures of the scheduler itself, and what ends an attempt before any node is looked at.
"""

from typing import Final

import pytest

from engine.diagnosis.texts import OTHER_WORDS, find_obstacle_of_reason

_OF_ONE_POD: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TEXTS: Final = {
    # 1.28 to 1.36
    "node(s) didn't satisfy existing pods anti-affinity rules": "PodAffinityMismatch",
    "node(s) didn't match pod affinity rules": "PodAffinityMismatch",
    "node(s) didn't match pod anti-affinity rules": "PodAffinityMismatch",
    "node(s) didn't match Pod's node affinity/selector": "AffinityMismatch",
    "node(s) didn't match scheduler-enforced node affinity": "EnforcedAffinity",
    "pod affinity terms conflict": "AffinityMismatch",
    "node(s) didn't match the requested node name": "AffinityMismatch",
    "node(s) didn't have free ports for the requested pod ports": "PortTaken",
    "node(s) were unschedulable": "NodeCordoned",
    "node(s) exceed max volume count": "VolumeLimit",
    "node(s) didn't match pod topology spread constraints": "TopologySpread",
    "node(s) didn't match pod topology spread constraints (missing required label)": "TopologySpread",
    "node(s) had untolerated taint {gpu: true}": "TaintNotTolerated",
    "node(s) didn't find available persistent volumes to bind": "VolumeElsewhere",
    "node(s) did not have enough free storage": "StorageFull",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": "VolumeGone",
    "node(s) had no available disk": "DiskAttached",
    "node(s) had no available volume zone": "VolumeElsewhere",
    "Insufficient cpu": "InsufficientResource",
    "Too many pods": "TooManyPods",
    "resourceclaim not available on the node": "ClaimNotOnNode",
    # 1.28 to 1.32
    "node(s) had volume node affinity conflict": "VolumeElsewhere",
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode": "ClaimOfOnePod",
    # From 1.32, 1.34, 1.35 and 1.36 on
    "cannot allocate all claims": "DevicesNotAllocatable",
    "node(s) didn't match PersistentVolume's node affinity": "VolumeElsewhere",
    _OF_ONE_POD: "ClaimOfOnePod",
    "node(s) had untolerated taint(s)": "TaintNotTolerated",
    "node declared features check failed - unsatisfied requirements: GuaranteedQoSPodCPUResize": "FeatureMissing",
    "node(s) didn't match Pod's required features": "FeatureMissing",
}


@pytest.mark.parametrize(("text", "code"), TEXTS.items())
def test_a_reason_of_a_plugin_has_its_obstacle(text: str, code: str) -> None:
    assert find_obstacle_of_reason(text)[0] == code


def test_words_of_no_plugin_are_quoted() -> None:
    assert find_obstacle_of_reason("node(s) had a bad day")[0] == OTHER_WORDS
