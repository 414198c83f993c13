"""M8: the policy of the component device-annotations has the annotations of every vendor, and none that users write."""

import re
from pathlib import Path
from typing import Final

import yaml

from engine.hami import annotations
from tests.support.builders.vendor_examples import VENDORS

POLICY: Final = Path(__file__).parents[3] / "deploy/kustomize/components/device-annotations/policy.yaml"
OF_SCHEDULERS: Final = {
    annotations.ASSIGNED_NODE, annotations.ASSIGNED_TIME, annotations.MIG_ALLOCATIONS, annotations.BIND_PHASE,
    annotations.BIND_TIME, annotations.DEVICES_ALLOCATED, annotations.DEVICES_TO_ALLOCATE,
}  # fmt: skip
OF_USERS: Final = {
    annotations.NODE_POLICY, annotations.DEVICE_POLICY, annotations.SCORING_WEIGHTS, annotations.USE_TYPE,
    annotations.NO_USE_TYPE, annotations.USE_UUID, annotations.NO_USE_UUID, annotations.NUMA_BIND,
    annotations.SHARING_MODE,
}  # fmt: skip


def test_m8_the_policy_has_the_annotations_of_every_vendor_and_none_that_users_write() -> None:
    policy, _ = yaml.safe_load_all(POLICY.read_text("utf-8"))
    [quoted] = [variable["expression"] for variable in policy["spec"]["variables"] if variable["name"] == "names"]
    names = re.compile(quoted.strip("'"))
    written = OF_SCHEDULERS | {name for vendor in VENDORS for name in (vendor.pod.allocated, vendor.pod.to_allocate)}
    assert {name for name in written if name and not names.match(name)} == set()
    user_annotations = OF_USERS | {
        name
        for vendor in VENDORS
        for name in (vendor.pod.use_type, vendor.pod.no_use_type, vendor.pod.use_uuid, vendor.pod.no_use_uuid)
    }
    assert {name for name in user_annotations if names.match(name)} == set()
    assert len(written) > 20
