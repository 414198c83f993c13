"""The four filters of volumes: restrictions, limits, binding, zones."""

from typing import Any

import pytest

from engine.filters.judgement import JudgedOutcome
from engine.filters.release import parse_release
from engine.snapshot import kinds
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.judged import get_codes, get_reasons, judge_pod

UNRESOLVABLE = {"n1": "UnschedulableAndUnresolvable"}
CONFLICT = ("node(s) didn't match PersistentVolume's node affinity",)
NO_VOLUME = ("node(s) didn't find available persistent volumes to bind",)
NO_SPACE = ("node(s) did not have enough free storage",)
NO_BOUND_VOLUME = ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)
NO_DISK = ("node(s) had no available disk",)
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)
TOO_MANY = ("node(s) exceed max volume count",)
OTHER_ZONE = ("node(s) had no available volume zone",)
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def with_claims(*names: str, pod: dict[str, Any] | None = None) -> dict[str, Any]:
    pod = pod or a_pod()
    pod["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return pod


def with_disk(pod: dict[str, Any], source: str, **fields: Any) -> dict[str, Any]:
    pod["spec"]["volumes"] = [{"name": "disk", source: fields}]
    return pod


def a_claim(name: str = "data", volume: str = "", size: str = "1Gi", **fields: Any) -> dict[str, Any]:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "volumeName": volume} | fields
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "annotations": annotations},
        "spec": spec | {"resources": {"requests": {"storage": size}}},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def a_volume(name: str = "pv", zone: str = "", size: str = "1Gi", **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
    }
    if zone:
        expression = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec | fields,
        "status": {"phase": "Available"},
    }


def a_class(mode: str = "WaitForFirstConsumer", provisioner: str = "csi.example.com", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }


def a_csi_node(limit: int | None = None, migrated: str = "") -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "csi.example.com", "nodeID": "n1"}
    if limit is not None:
        driver["allocatable"] = {"count": limit}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1", "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}},
        "spec": {"drivers": [driver]},
    }


def a_driver(*, tracks: bool) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"storageCapacity": tracks},
    }


def a_capacity(amount: str | None, zone: str = "a", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"namespace": "kube-system", "name": f"c-{zone}"},
        "storageClassName": "local",
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": amount,
        **fields,
    }


def a_zoned_node(zone: str, name: str = "n1") -> dict[str, Any]:
    return a_node(name, labels={"zone": zone})


def get_refusal(pod: dict[str, Any], *objects: dict[str, Any]) -> tuple[str, str]:
    """Return plugin and reason of the refusal before any node."""
    judgement = judge_pod(pod, a_node(), *objects)
    assert judgement.outcome is JudgedOutcome.PREFILTER
    assert judgement.prefilter
    assert judgement.prefilter.code.value == "UnschedulableAndUnresolvable"
    [reason] = judgement.prefilter.reasons
    assert judgement.message == f"0/1 nodes are available: {reason}. not found"
    return judgement.prefilter.plugin, reason


def test_a_missing_claim_is_reported_by_the_restrictions_first() -> None:
    assert get_refusal(with_claims("data")) == ("VolumeRestrictions", 'persistentvolumeclaim "data" not found')


def test_a_lost_claim_refuses_the_pod() -> None:
    claim = a_claim(volume="pv")
    claim["status"]["phase"] = "Lost"
    reason = 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'
    assert get_refusal(with_claims("data"), claim) == ("VolumeBinding", reason)


def test_a_claim_being_deleted_refuses_the_pod() -> None:
    claim = a_claim(volume="pv")
    claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    reason = 'persistentvolumeclaim "data" is being deleted'
    assert get_refusal(with_claims("data"), claim) == ("VolumeBinding", reason)


def with_ephemeral_volume() -> dict[str, Any]:
    pod = a_pod("ask")
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    return pod


def test_a_volume_of_the_pods_own_waits_for_its_claim() -> None:
    reason = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "ask-scratch"'
    assert get_refusal(with_ephemeral_volume()) == ("VolumeBinding", reason)


def test_a_claim_that_was_made_for_something_else_refuses_the_pod() -> None:
    claim = a_claim("ask-scratch", volume="pv")
    reason = "PVC default/ask-scratch was not created for pod default/ask (pod is not owner)"
    assert get_refusal(with_ephemeral_volume(), claim, a_volume()) == ("VolumeBinding", reason)
    owner = {"kind": "Pod", "name": "ask", "uid": "uid-ask"}
    claim["metadata"]["ownerReferences"] = [owner]
    assert get_refusal(with_ephemeral_volume(), claim, a_volume()) == ("VolumeBinding", reason)
    owner["controller"] = True  # type: ignore[assignment]
    assert judge_pod(with_ephemeral_volume(), a_node(), claim, a_volume()).fitting == ("n1",)


@pytest.mark.parametrize("objects", [[], [a_class("Immediate")]])
def test_a_claim_to_be_bound_without_the_pod_has_to_be_bound(objects: list[dict[str, Any]]) -> None:
    reason = "pod has unbound immediate PersistentVolumeClaims"
    assert get_refusal(with_claims("data"), a_claim(), *objects) == ("VolumeBinding", reason)


def test_a_claim_that_wants_one_volume_and_is_not_bound_yet_refuses_the_pod() -> None:
    claim = a_claim(volume="pv")
    claim["metadata"]["annotations"] = {}
    reason = "pod has unbound immediate PersistentVolumeClaims"
    assert get_refusal(with_claims("data"), claim, a_class(), a_volume()) == ("VolumeBinding", reason)


def test_a_bound_volume_has_to_be_reachable() -> None:
    judgement = judge_pod(
        with_claims("data"), a_zoned_node("a"), a_zoned_node("b", "n2"), a_claim(volume="pv"), a_volume(zone="b")
    )
    assert get_reasons(judgement) == CONFLICT
    assert get_codes(judgement) == UNRESOLVABLE
    assert judgement.fitting == ("n2",)


def test_releases_before_1_34_call_it_a_conflict() -> None:
    objects = (a_zoned_node("a"), a_claim(volume="pv"), a_volume(zone="b"))
    judgement = judge_pod(with_claims("data"), *objects, release=parse_release("1.33"))
    assert get_reasons(judgement) == ("node(s) had volume node affinity conflict",)


def test_a_claim_bound_to_a_volume_that_is_gone_refuses_the_zone_filter() -> None:
    assert get_refusal(with_claims("data"), a_claim(volume="pv")) == ("VolumeZone", 'persistentvolume "pv" not found')


def test_a_volume_of_the_pods_own_that_is_gone_refuses_every_node() -> None:
    claim = a_claim("ask-scratch", volume="pv")
    claim["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "ask", "uid": "uid-ask", "controller": True}]
    assert get_reasons(judge_pod(with_ephemeral_volume(), a_node(), claim)) == NO_BOUND_VOLUME


def test_reasons_of_bound_and_unbound_claims_come_together() -> None:
    objects = (a_claim("a", volume="pv"), a_volume(zone="b"), a_claim("c"), a_class(provisioner=""))
    assert get_reasons(judge_pod(with_claims("a", "c"), a_zoned_node("a"), *objects)) == CONFLICT + NO_VOLUME


def test_a_free_volume_is_bound_where_it_can_be_reached() -> None:
    objects = (a_claim(), a_class(provisioner="kubernetes.io/no-provisioner"), a_volume(zone="b"))
    judgement = judge_pod(with_claims("data"), a_zoned_node("a"), a_zoned_node("b", "n2"), *objects)
    assert get_reasons(judgement) == NO_VOLUME
    assert get_codes(judgement) == UNRESOLVABLE
    assert judgement.fitting == ("n2",)


@pytest.mark.parametrize(
    "fields",
    [
        {"capacity": {"storage": "500Mi"}},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"storageClassName": "other"},
        {"volumeAttributesClassName": "gold"},
        {"claimRef": {"namespace": "default", "name": "other"}},
        {"claimRef": {"namespace": "default", "name": "data", "uid": "uid-former"}},
    ],
)
def test_a_volume_that_does_not_suit_is_passed_over(fields: dict[str, Any]) -> None:
    objects = (a_claim(), a_class(provisioner=""))
    assert get_reasons(judge_pod(with_claims("data"), a_node(), *objects, a_volume())) == ()
    assert get_reasons(judge_pod(with_claims("data"), a_node(), *objects, a_volume(**fields))) == NO_VOLUME


def test_a_volume_that_is_not_available_or_being_deleted_is_passed_over() -> None:
    objects = (a_claim(), a_class(provisioner=""))
    released, leaving = a_volume(), a_volume()
    released["status"]["phase"] = "Released"
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for volume in (released, leaving):
        assert get_reasons(judge_pod(with_claims("data"), a_node(), *objects, volume)) == NO_VOLUME


def test_the_selector_of_a_claim_selects_volumes() -> None:
    claim = a_claim(selector={"matchLabels": {"tier": "fast"}})
    volume = a_volume()
    assert get_reasons(judge_pod(with_claims("data"), a_node(), claim, a_class(provisioner=""), volume)) == NO_VOLUME
    volume["metadata"]["labels"] = {"tier": "fast"}
    assert get_reasons(judge_pod(with_claims("data"), a_node(), claim, a_class(provisioner=""), volume)) == ()


def test_a_volume_reserved_for_the_claim_is_the_only_one_that_will_do() -> None:
    reserved = a_volume("reserved", zone="b", claimRef={"namespace": "default", "name": "data"})
    reserved["status"]["phase"] = "Bound"
    objects = (a_claim(), a_class(provisioner=""), reserved, a_volume("free"))
    judgement = judge_pod(with_claims("data"), a_zoned_node("a"), a_zoned_node("b", "n2"), *objects)
    assert get_reasons(judgement) == NO_VOLUME
    assert judgement.fitting == ("n2",)


def test_two_claims_need_two_volumes_and_the_smaller_takes_the_smaller() -> None:
    claims = (a_claim("a", size="5Gi"), a_claim("b", size="1Gi"))
    volumes = (a_volume("small", size="2Gi"), a_volume("large", size="6Gi"))
    objects = (*claims, a_class(provisioner=""))
    assert get_reasons(judge_pod(with_claims("a", "b"), a_node(), *objects, *volumes)) == ()
    assert get_reasons(judge_pod(with_claims("a", "b"), a_node(), *objects, volumes[1])) == NO_VOLUME


def test_the_smaller_claim_chooses_first() -> None:
    selective = a_claim("small", size="1Gi", selector={"matchLabels": {"tier": "fast"}})
    fast, plain = a_volume("fast", size="6Gi"), a_volume("plain", size="7Gi")
    fast["metadata"]["labels"] = {"tier": "fast"}
    objects = (a_claim("large", size="5Gi"), selective, a_class(provisioner=""), fast, plain)
    assert get_reasons(judge_pod(with_claims("large", "small"), a_node(), *objects)) == ()


def test_a_provisioner_makes_volumes_only_in_the_topologies_of_the_class() -> None:
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": ["b", "c"]}]}]
    objects = (a_claim(), a_class(allowedTopologies=terms))
    judgement = judge_pod(with_claims("data"), a_zoned_node("a"), a_zoned_node("b", "n2"), *objects)
    assert get_reasons(judgement) == NO_VOLUME
    assert judgement.fitting == ("n2",)
    assert get_reasons(judge_pod(with_claims("data"), a_zoned_node("a"), a_claim(), a_class())) == ()


def test_a_driver_that_tracks_capacity_needs_enough_near_the_node() -> None:
    objects = (a_claim(size="10Gi"), a_class(), a_capacity("10Gi", "a"), a_capacity("9Gi", "b"))
    judgement = judge_pod(
        with_claims("data"), a_zoned_node("a"), a_zoned_node("b", "n2"), *objects, a_driver(tracks=True)
    )
    assert get_reasons(judgement, "n2") == NO_SPACE
    assert get_codes(judgement) == {"n2": "UnschedulableAndUnresolvable"}
    assert judgement.fitting == ("n1",)
    assert judge_pod(with_claims("data"), a_zoned_node("b"), *objects, a_driver(tracks=False)).fitting == ("n1",)


def test_a_capacity_of_another_class_or_without_an_amount_or_a_topology_does_not_count() -> None:
    objects = (a_claim(size="10Gi"), a_class(), a_driver(tracks=True))
    capacities = [a_capacity("10Gi", storageClassName="other"), a_capacity(None)]
    capacities.append(a_capacity("10Gi", nodeTopology=None))
    for capacity in capacities:
        assert get_reasons(judge_pod(with_claims("data"), a_zoned_node("a"), *objects, capacity)) == NO_SPACE


def test_the_largest_single_volume_counts_before_the_capacity() -> None:
    objects = (a_claim(size="10Gi"), a_class(), a_driver(tracks=True))
    small = a_capacity("100Gi", "a", maximumVolumeSize="9Gi")
    assert get_reasons(judge_pod(with_claims("data"), a_zoned_node("a"), *objects, small)) == NO_SPACE


def test_a_claim_with_a_node_chosen_fits_no_other() -> None:
    claim = a_claim()
    claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n2"}
    judgement = judge_pod(with_claims("data"), a_node("n1"), a_node("n2"), claim, a_class())
    assert get_reasons(judgement) == NO_VOLUME
    assert judgement.fitting == ("n2",)


@pytest.mark.parametrize(
    ("source", "mine", "theirs", "conflicts"),
    [
        ("gcePersistentDisk", {"pdName": "d"}, {"pdName": "d"}, True),
        ("gcePersistentDisk", {"pdName": "d"}, {"pdName": "e"}, False),
        ("gcePersistentDisk", {"pdName": "d", "readOnly": True}, {"pdName": "d", "readOnly": True}, False),
        ("gcePersistentDisk", {"pdName": "d", "readOnly": True}, {"pdName": "d"}, True),
        ("awsElasticBlockStore", {"volumeID": "v", "readOnly": True}, {"volumeID": "v", "readOnly": True}, True),
        ("iscsi", {"iqn": "q"}, {"iqn": "q"}, True),
        ("iscsi", {"iqn": "q", "readOnly": True}, {"iqn": "q", "readOnly": True}, False),
        (
            "rbd",
            {"image": "i", "pool": "p", "monitors": ["a", "b"]},
            {"image": "i", "pool": "p", "monitors": ["b"]},
            True,
        ),
        ("rbd", {"image": "i", "pool": "p", "monitors": ["a"]}, {"image": "i", "pool": "p", "monitors": ["b"]}, False),
        ("rbd", {"image": "i", "pool": "p", "monitors": ["a"]}, {"image": "i", "pool": "o", "monitors": ["a"]}, False),
        ("azureDisk", {"diskURI": "u"}, {"diskURI": "u"}, False),
    ],
)
def test_a_disk_is_shared_only_for_reading(
    source: str, mine: dict[str, Any], theirs: dict[str, Any], *, conflicts: bool
) -> None:
    other = with_disk(a_pod("other", node="n1"), source, **theirs)
    judgement = judge_pod(with_disk(a_pod(), source, **mine), a_node(), other)
    assert get_reasons(judgement) == (NO_DISK if conflicts else ())
    assert get_codes(judgement) == ({"n1": "Unschedulable"} if conflicts else {})


def test_disks_of_different_sources_are_different_although_their_names_are_equal() -> None:
    other = with_disk(a_pod("other", node="n1"), "iscsi", iqn="d")
    assert get_reasons(judge_pod(with_disk(a_pod(), "gcePersistentDisk", pdName="d"), a_node(), other)) == ()


def test_a_claim_for_one_pod_refuses_every_node_while_it_is_in_use() -> None:
    objects = (a_claim(volume="pv", accessModes=["ReadWriteOncePod"]), a_volume())
    user = with_claims("data", pod=a_pod("user", node="n1"))
    judgement = judge_pod(with_claims("data"), a_node("n1"), a_node("n2"), *objects, user)
    assert get_reasons(judgement, "n2") == IN_USE
    assert get_codes(judgement) == {"n1": "Unschedulable", "n2": "Unschedulable"}
    assert judge_pod(with_claims("data"), a_node("n1"), *objects).fitting == ("n1",)
    user["metadata"]["namespace"] = "other"
    assert judge_pod(with_claims("data"), a_node("n1"), *objects, user).fitting == ("n1",)


def test_a_claim_for_one_node_may_be_shared() -> None:
    user = with_claims("data", pod=a_pod("user", node="n1"))
    assert judge_pod(with_claims("data"), a_node(), a_claim(volume="pv"), a_volume(), user).fitting == ("n1",)


def test_volumes_beyond_the_limit_of_the_driver_are_refused() -> None:
    objects = (a_claim("a", volume="va"), a_volume("va"), a_claim("b", volume="vb"), a_volume("vb"))
    user = with_claims("b", pod=a_pod("user", node="n1"))
    judgement = judge_pod(with_claims("a"), a_node(), *objects, user, a_csi_node(1))
    assert get_reasons(judgement) == TOO_MANY
    assert get_codes(judgement) == {"n1": "Unschedulable"}
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user, a_csi_node(2))) == ()
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user, a_csi_node())) == ()
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user)) == ()


def test_a_volume_that_is_on_the_node_already_does_not_count_twice() -> None:
    objects = (a_claim("a", volume="va"), a_volume("va"))
    user = with_claims("a", pod=a_pod("user", node="n1"))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user, a_csi_node(1))) == ()


def an_attachment(volume: str, node: str = "n1") -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"att-{volume}"},
        "spec": {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}},
    }


def test_attachments_without_a_pod_count() -> None:
    objects = (a_claim("a", volume="va"), a_volume("va"), a_volume("left"), a_csi_node(1))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, an_attachment("left"))) == TOO_MANY
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, an_attachment("left", "n9"))) == ()


def test_attachments_that_name_no_driver_or_no_csi_volume_do_not_count() -> None:
    nfs = a_volume("nfs", csi=None, nfs={"server": "s"})
    nameless = an_attachment("left")
    nameless["spec"]["attacher"] = ""
    objects = (a_claim("a", volume="va"), a_volume("va"), a_volume("left"), nfs, a_csi_node(1))
    attachments = (nameless, an_attachment("nfs"), an_attachment("unknown"))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, *attachments)) == ()


def test_an_attachment_of_the_pods_own_volume_counts_as_well() -> None:
    objects = (a_claim("a", volume="va"), a_volume("va"), an_attachment("va"))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, a_csi_node(1))) == TOO_MANY
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, a_csi_node(2))) == ()


def test_volumes_are_counted_by_driver() -> None:
    other = a_volume("vb", csi={"driver": "other.example.com", "volumeHandle": "vb"})
    objects = (a_claim("a", volume="va"), a_volume("va"), a_claim("b", volume="vb"), other, a_csi_node(1))
    user = with_claims("b", pod=a_pod("user", node="n1"))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user)) == ()
    # The driver of volume b has no limit on the node.
    assert get_reasons(judge_pod(with_claims("b"), a_node(), *objects, an_attachment("va"))) == ()
    full = (*objects, a_claim("c", volume="vc"), a_volume("vc"), with_claims("c", pod=a_pod("full", node="n1")))
    assert get_reasons(judge_pod(with_claims("b", "a"), a_node(), *full)) == TOO_MANY


def test_a_volume_without_a_handle_does_not_count() -> None:
    volume = a_volume("va", csi={"driver": "csi.example.com", "volumeHandle": ""})
    assert get_reasons(judge_pod(with_claims("a"), a_node(), a_claim("a", volume="va"), volume, a_csi_node(0))) == ()


def test_a_claim_without_a_class_or_with_an_unknown_one_does_not_count() -> None:
    user = with_claims("b", pod=a_pod("user", node="n1"))
    objects = (a_claim("a", volume="va"), a_volume("va"), a_csi_node(1), user)
    for name in ("", "unknown"):
        assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, a_claim("b", storageClassName=name))) == ()


def test_a_pod_with_the_claim_of_another_fails_the_attempt() -> None:
    other = a_pod("other", node="n1")
    other["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {}}]
    objects = (a_claim("a", volume="va"), a_volume("va"), a_csi_node(5), a_claim("other-scratch", volume="vo"))
    judgement = judge_pod(with_claims("a"), a_node(), *objects, other)
    assert judgement.outcome is JudgedOutcome.ERROR
    assert judgement.message == (
        'running "NodeVolumeLimits" filter plugin: PVC default/other-scratch was not created for pod default/other '
        "(pod is not owner)"
    )


def with_nomination(pod: dict[str, Any]) -> dict[str, Any]:
    pod["status"]["nominatedNodeName"] = "n1"
    return pod


def test_a_nominated_pod_uses_its_claims_and_its_disks() -> None:
    objects = (a_claim(volume="pv", accessModes=["ReadWriteOncePod"]), a_volume())
    pod = with_claims("data")
    pod["spec"]["volumes"].append({"name": "disk", "gcePersistentDisk": {"pdName": "d"}})
    claiming = with_nomination(with_claims("data", pod=a_pod("waiting")))
    judgement = judge_pod(pod, a_node("n1"), a_node("n2"), *objects, claiming)
    assert get_reasons(judgement) == IN_USE
    assert judgement.fitting == ("n2",)
    writing = with_nomination(with_disk(a_pod("waiting"), "gcePersistentDisk", pdName="d"))
    assert get_reasons(judge_pod(pod, a_node(), *objects, writing)) == NO_DISK


def test_preemption_frees_a_claim_for_one_pod() -> None:
    objects = (a_claim(volume="pv", accessModes=["ReadWriteOncePod"]), a_volume())
    pod, user = with_claims("data"), with_claims("data", pod=a_pod("user", node="n1"))
    pod["spec"]["priority"] = 5
    # On n2 nothing is in the way that could be ended there.
    judgement = judge_pod(pod, a_node("n2"), a_node("n1"), *objects, user, a_pod("bystander", node="n2"))
    assert judgement.preemption_node == "n1"


def test_a_claim_for_one_pod_is_open_without_the_pods() -> None:
    objects = (a_claim(volume="pv", accessModes=["ReadWriteOncePod"]), a_volume())
    judgement = judge_pod(with_claims("data"), a_node(), *objects, unread=(kinds.POD,))
    assert "VolumeRestrictions" in {unjudged.plugin for unjudged in judgement.undecided["n1"]}
    shared = judge_pod(with_claims("data"), a_node(), a_claim(volume="pv"), a_volume(), unread=(kinds.POD,))
    assert "VolumeRestrictions" in shared.skipped


def test_a_volume_that_is_still_to_be_made_counts_for_its_driver() -> None:
    objects = (a_claim("a"), a_class(), a_claim("b", volume="vb"), a_volume("vb"), a_csi_node(1))
    user = with_claims("b", pod=a_pod("user", node="n1"))
    assert get_reasons(judge_pod(with_claims("a"), a_node(), *objects, user)) == TOO_MANY


def test_a_disk_of_a_source_that_was_removed_counts_for_its_driver() -> None:
    csi_node = a_csi_node()
    csi_node["spec"]["drivers"] = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 0}}]
    pod = with_disk(a_pod(), "awsElasticBlockStore", volumeID="aws://zone/vol-1")
    assert get_reasons(judge_pod(pod, a_node(), csi_node)) == TOO_MANY


def a_zoned_volume(**labels: str) -> dict[str, Any]:
    volume = a_volume()
    volume["metadata"]["labels"] = labels
    return volume


@pytest.mark.parametrize(
    ("volume", "node", "fits"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"topology.kubernetes.io/region": "r"}, False),
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
        ({ZONE: "a__"}, {ZONE: "b"}, True),
        ({"topology.kubernetes.io/region": "r"}, {"topology.kubernetes.io/region": "s"}, False),
    ],
)
def test_find_zone_labels_of_volume_and_node_have_to_agree(
    volume: dict[str, str], node: dict[str, str], *, fits: bool
) -> None:
    judgement = judge_pod(with_claims("data"), a_node(labels=node), a_claim(volume="pv"), a_zoned_volume(**volume))
    assert get_reasons(judgement) == (() if fits else OTHER_ZONE)
    assert get_codes(judgement) == ({} if fits else UNRESOLVABLE)


def test_a_migrated_volume_is_reached_by_the_find_zone_label_of_its_driver() -> None:
    volume = a_volume(gcePersistentDisk={"pdName": "d"})
    del volume["spec"]["csi"]
    expression = {"key": ZONE, "operator": "In", "values": ["a"]}
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    objects = (a_claim(volume="pv"), volume, a_csi_node(migrated="kubernetes.io/gce-pd,kubernetes.io/cinder"))
    assert get_reasons(judge_pod(with_claims("data"), a_node(labels={"topology.gke.io/zone": "a"}), *objects)) == ()
    assert get_reasons(judge_pod(with_claims("data"), a_node(labels={ZONE: "a"}), *objects)) == CONFLICT
    assert get_reasons(judge_pod(with_claims("data"), a_node(labels={ZONE: "a"}), *objects[:2])) == ()


def test_a_migrated_volume_without_affinity_is_reached_by_its_find_zone_label() -> None:
    volume = a_zoned_volume(**{BETA_ZONE: "a__b"})
    volume["spec"] |= {"awsElasticBlockStore": {"volumeID": "v"}, "csi": None}
    csi_node = a_csi_node(migrated="kubernetes.io/aws-ebs")
    key = "topology.ebs.csi.aws.com/zone"
    objects = (a_claim(volume="pv"), volume, csi_node)
    assert get_reasons(judge_pod(with_claims("data"), a_node(labels={key: "b"}), *objects)) == ()
    assert get_reasons(judge_pod(with_claims("data"), a_node(labels={key: "c"}), *objects)) == CONFLICT


@pytest.mark.parametrize(
    ("unread", "plugins"),
    [
        (kinds.VOLUME_CLAIM, {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}),
        (kinds.VOLUME, {"NodeVolumeLimits", "VolumeBinding", "VolumeZone"}),
        (kinds.CSI_NODE, {"NodeVolumeLimits"}),
    ],
)
def test_volumes_cannot_be_judged_without_their_objects(unread: str, plugins: set[str]) -> None:
    judgement = judge_pod(with_claims("data"), a_node(), a_claim(volume="pv"), a_volume(), unread=(unread,))
    assert {unjudged.plugin for unjudged in judgement.unjudged} == plugins
    assert all(unjudged.kinds == {unread} for unjudged in judgement.unjudged)
    assert judgement.outcome is JudgedOutcome.OPEN


def test_unread_volumes_do_not_matter_to_a_pod_without_any() -> None:
    judgement = judge_pod(a_pod(), a_node(), unread=(kinds.VOLUME_CLAIM, kinds.VOLUME, kinds.CSI_NODE))
    assert judgement.outcome is JudgedOutcome.FITS
