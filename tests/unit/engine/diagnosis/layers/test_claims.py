"""PersistentVolumeClaims and ResourceClaims that keep a pod from every node."""

from typing import Any

from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code

VOLUMES = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "results"}}]}


def a_claim(name: str = "results", **more: Any) -> Json:
    metadata = {"namespace": "lab", "name": name, **more.get("metadata", {})}
    spec = {"storageClassName": "fast", "volumeName": "pv-9"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec,
            "status": {"phase": more.get("phase", "Bound")}}  # fmt: skip


def a_storage_class(mode: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "volumeBindingMode": mode,
    }


def an_object(kind: str, name: str, namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **fields}


def test_a_claim_that_is_being_deleted_names_its_finalizers_and_its_users() -> None:
    metadata = {"deletionTimestamp": "2026-11-24T07:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    refusal = (
        '0/4 nodes are available: persistentvolumeclaim "results" is being deleted. preemption: '
        "0/4 nodes are available: 4 Preemption is not helpful for scheduling."
    )
    pods = [
        a_pod(spec=VOLUMES, refusal=refusal),
        a_pod("writer", spec={**VOLUMES, "nodeName": "n"}, status={"phase": "Running"}),
    ]
    diagnosis = diagnose_case(*pods, a_claim(metadata=metadata), an_event("FailedScheduling", refusal))
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", "ClaimDeleted")
    assert diagnosis.sentence.en == (
        "The pod's PersistentVolumeClaim results is being deleted since 2026-11-24 07:00:00 UTC; it waits for the "
        "finalizers kubernetes.io/pvc-protection; pods that still use it: writer."
    )
    assert not diagnosis.other_obstacles


def test_the_schedulers_words_are_enough_without_the_claims_object() -> None:
    for words, code in (
        ('persistentvolumeclaim "results" is being deleted', "ClaimDeleted"),
        ('persistentvolumeclaim "results" bound to non-existent persistentvolume "pv-9"', "ClaimLost"),
        ('persistentvolumeclaim "results" not found', "ClaimMissing"),
        ('waiting for ephemeral volume controller to create the persistentvolumeclaim "results"', "ClaimNotMade"),
    ):
        refusal = f"0/4 nodes are available: {words}."
        diagnosis = diagnose_case(a_pod(spec=VOLUMES, refusal=refusal), an_event("FailedScheduling", refusal))
        assert get_code(diagnosis) == code
        assert "results" in diagnosis.sentence.en


def test_a_lost_claim_names_its_volume() -> None:
    diagnosis = diagnose_case(a_pod(spec=VOLUMES), a_claim(phase="Lost"))
    assert get_code(diagnosis) == "ClaimLost"
    assert "the volume pv-9, which no longer exists" in diagnosis.sentence.en


def test_a_missing_claim_is_compared_with_those_that_exist() -> None:
    diagnosis = diagnose_case(a_pod(spec=VOLUMES), a_claim("result"))
    assert diagnosis.sentence.en == (
        "The pod names a PersistentVolumeClaim that does not exist: results; the nearest name that exists is result."
    )


def test_a_volume_of_another_zone_comes_before_the_taints_of_that_zone() -> None:
    refusal = (
        "0/3 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 2 "
        "node(s) had untolerated taint(s)."
    )
    term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z-2"]}]}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-9"},
              "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}  # fmt: skip
    nodes = [a_node("a-1"), a_node("b-1", taint="gpu"), a_node("b-2", taint="gpu")]
    diagnosis = diagnose_case(
        a_pod(spec=VOLUMES, refusal=refusal), a_claim(), a_storage_class("Immediate"), volume, *nodes,
        an_event("FailedScheduling", refusal),
    )  # fmt: skip
    assert get_code(diagnosis) == "VolumeOutOfReach"
    assert diagnosis.sentence.en == (
        "The pod's volume can't be reached from 1 of 3 nodes: pv-9 of claim results, only on nodes with "
        "topology.kubernetes.io/zone In z-2; cordon, taints and selector leave the pod only a-1; the class of results "
        "binds at once (Immediate), wherever the pod may run."
    )
    assert [other.code for other in diagnosis.other_obstacles] == ["TaintNotTolerated"]


def test_a_device_claim_that_does_not_exist_is_not_the_schedulers_fault() -> None:
    pod = a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "big"}]})
    diagnosis = diagnose_case(pod, an_object("ResourceClaim", "bigger", spec={}), a_node("n"))
    assert get_code(diagnosis) == "DeviceClaimMissing"
    assert diagnosis.sentence.en == (
        "The pod names the ResourceClaim big, which does not exist in namespace lab; the nearest name that exists is "
        "bigger."
    )
    # Without any object of the kind, the answer is about what was read.
    assert "as far as the objects that were read show" in diagnose_case(pod, a_node("n")).sentence.en


def test_a_template_that_does_not_exist_is_named_by_the_controllers_event_or_by_the_objects() -> None:
    pod = a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "half"}]})
    note = (
        'PodResourceClaim gpu: failed to create ResourceClaim: resourceclaimtemplates.resource.k8s.io "half" not found'
    )
    event = an_event("FailedResourceClaimCreation", note, reporter="resource_claim")
    for diagnosis in (diagnose_case(pod, event), diagnose_case(pod, an_object("DeviceClass", "gpu", ""))):
        assert get_code(diagnosis) == "ClaimTemplateMissing"
        assert "ResourceClaimTemplate half, which does not exist in namespace lab" in diagnosis.sentence.en


def test_a_missing_class_names_the_nearest_that_exists() -> None:
    refusal = (
        "0/2 nodes are available: request gpu: device class gpu.vendor.org does not exist. no new claims to deallocate"
    )
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.vendor.org"}}]}}
    claim = an_object("ResourceClaim", "one", spec=spec, status={})
    classes = [an_object("DeviceClass", name, "") for name in ("gpu.vendor.com", "nic.example")]
    pod = a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}, refusal=refusal)
    diagnosis = diagnose_case(pod, claim, *classes, an_event("FailedScheduling", refusal))
    assert get_code(diagnosis) == "DeviceClassMissing"
    assert diagnosis.sentence.en == (
        "The pod's device claim asks for the DeviceClass gpu.vendor.org, which the cluster does "
        "not have (claim one); it "
        "has gpu.vendor.com."
    )


def test_a_selector_that_fails_is_a_mistake_of_the_claim() -> None:
    refusal = (
        'running "DynamicResources" filter plugin: claim lab/one: selector #0: CEL runtime error: no such key: memory'
    )
    diagnosis = diagnose_case(a_pod(refusal=refusal), an_event("FailedScheduling", refusal))
    assert get_code(diagnosis) == "DeviceSelectorFails"
    assert "no such key: memory" in diagnosis.sentence.en


def test_a_claim_in_use_names_who_uses_it() -> None:
    refusal = "0/2 nodes are available: resourceclaim in use."
    claim = an_object("ResourceClaim", "one", spec={}, status={"reservedFor": [{"resource": "pods", "name": "first"}]})
    pod = a_pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}, refusal=refusal)
    diagnosis = diagnose_case(pod, claim, an_event("FailedScheduling", refusal))
    assert get_code(diagnosis) == "DeviceClaimReserved"
    assert diagnosis.sentence.en.endswith(": one, reserved for first.")
