"""The filter VolumeBinding on small clusters: claims that can't be used, bound volumes, volumes to bind or to make.

Expected values: what Kubernetes documents about binding modes, topologies and storage capacity
(https://kubernetes.io/docs/concepts/storage/storage-classes/ and …/storage-capacity/), in kube-scheduler's words.
"""

from typing import Any

import pytest

from engine.filters.cycle import SKIPPED, Prepared, SchedulingCycle, start_cycle
from engine.filters.release import LATEST, SchedulerRelease, parse_release
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged
from engine.filters.volume_binding import VolumeBindingCheck, allows_topology, prepare
from engine.snapshot import kinds
from engine.snapshot.reading import read_snapshot
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import read_storage_class
from tests.support.builders.cluster import Object, a_node, a_pod

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
OLD_CONFLICT = "node(s) had volume node affinity conflict"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_BOUND_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
STATIC = "kubernetes.io/no-provisioner"
DRIVER = "csi.example.com"


def a_claim(name: str = "data", volume: str = "", size: str | None = "1Gi", **spec: Any) -> Object:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "volumeName": volume} | spec
    if size:
        spec["resources"] = {"requests": {"storage": size}}
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "annotations": annotations}
    status = {"phase": "Bound" if volume else "Pending"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def a_volume(name: str = "pv", zone: str = "", size: str = "1Gi", **spec: Any) -> Object:
    spec = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "csi": {"driver": DRIVER, "volumeHandle": name},
    } | spec
    if zone:
        expression = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Available"},
    }


def a_class(
    mode: str = "WaitForFirstConsumer", provisioner: str = DRIVER, name: str = "local", **fields: Any
) -> Object:
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return base | {"provisioner": provisioner, "volumeBindingMode": mode} | fields


def a_driver(*, tracks: bool = True) -> Object:
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
    return base | {"spec": {"storageCapacity": tracks}}


def a_capacity(amount: str | None, zone: str = "a", **fields: Any) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"namespace": "kube-system", "name": f"c-{zone}"},
        "storageClassName": "local",
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": amount,
    } | fields


NODES = (a_node("n1", labels={"zone": "a"}), a_node("n2", labels={"zone": "b"}))


def use_claims(*names: str) -> Object:
    pod = a_pod("ask")
    pod["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return pod


def use_ephemeral_volume() -> Object:
    pod = a_pod("ask")
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    return pod


def start(
    pod: Object, *objects: Object, unread: tuple[str, ...] = (), release: SchedulerRelease = LATEST
) -> tuple[Snapshot, Prepared]:
    snapshot = read_snapshot([*NODES, *objects], unread)
    assert not snapshot.rejected
    cycle = start_cycle(snapshot, pod, release)
    assert isinstance(cycle, SchedulingCycle), cycle
    return snapshot, prepare(cycle)


def list_reasons(pod: Object, *objects: Object, release: SchedulerRelease = LATEST) -> list[tuple[str, ...]]:
    """List the reasons against each of the two nodes, in the zones a and b."""
    snapshot, check = start(pod, *objects, release=release)
    assert isinstance(check, VolumeBindingCheck), check
    verdicts = [check.judge(snapshot.nodes[name]) for name in ("n1", "n2")]
    for verdict in verdicts:
        if verdict is not None:
            assert isinstance(verdict, PluginRefusal)
            assert (verdict.plugin, verdict.code) == ("VolumeBinding", StatusCode.UNRESOLVABLE)
    return [verdict.reasons if isinstance(verdict, PluginRefusal) else () for verdict in verdicts]


def get_refusal(pod: Object, *objects: Object) -> str:
    """Return the reason that refuses the pod before any node."""
    _, refusal = start(pod, *objects)
    assert isinstance(refusal, PluginRefusal), refusal
    assert (refusal.plugin, refusal.code) == ("VolumeBinding", StatusCode.UNRESOLVABLE)
    (reason,) = refusal.reasons
    return reason


def test_a_pod_without_claims_is_not_checked() -> None:
    assert start(a_pod())[1] is SKIPPED
    disk = a_pod()
    disk["spec"]["volumes"] = [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]
    assert start(disk)[1] is SKIPPED


def change(claim: Object, **metadata: Any) -> Object:
    return claim | {"metadata": claim["metadata"] | metadata}


def test_a_claim_that_is_not_there_refuses_the_pod() -> None:
    assert get_refusal(use_claims("data")) == 'persistentvolumeclaim "data" not found'
    assert get_refusal(use_ephemeral_volume()) == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "ask-scratch"'
    )


def test_a_claim_that_is_lost_or_deleted_refuses_the_pod() -> None:
    lost = a_claim(volume="pv") | {"status": {"phase": "Lost"}}
    assert get_refusal(use_claims("data"), lost) == (
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'
    )
    deleted = change(a_claim(volume="pv"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert get_refusal(use_claims("data"), deleted, a_volume()) == 'persistentvolumeclaim "data" is being deleted'


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [
        (None, True),
        ({"uid": "uid-other", "controller": True}, True),
        ({"uid": "uid-ask", "controller": False}, True),
        ({"uid": "uid-ask", "controller": True}, False),
    ],
)
def test_a_claim_of_the_pods_own_has_to_be_made_for_it(owner: Object | None, is_refused: bool) -> None:
    owners = [{"kind": "Pod", "name": "ask", **owner}] if owner else []
    claim = change(a_claim("ask-scratch", volume="pv"), ownerReferences=owners)
    if is_refused:
        assert get_refusal(use_ephemeral_volume(), claim, a_volume()) == (
            "PVC default/ask-scratch was not created for pod default/ask (pod is not owner)"
        )
    else:
        assert list_reasons(use_ephemeral_volume(), claim, a_volume()) == [(), ()]
    # A claim that the pod names may have any owner.
    assert list_reasons(use_claims("ask-scratch"), claim, a_volume()) == [(), ()]


@pytest.mark.parametrize(
    ("claim", "objects"),
    [
        (a_claim(), []),
        (a_claim(), [a_class("Immediate")]),
        (a_claim(), [a_class(name="other")]),
        (a_claim(storageClassName=""), [a_class()]),
        # A claim that wants one volume, and whose binding is not complete.
        (change(a_claim(volume="pv"), annotations={}), [a_class(), a_volume()]),
    ],
)
def test_a_claim_that_does_not_wait_for_the_pod_has_to_be_bound(claim: Object, objects: list[Object]) -> None:
    assert get_refusal(use_claims("data"), claim, *objects) == UNBOUND
    assert get_refusal(use_claims("other", "data"), a_claim("other"), claim, *objects) == UNBOUND


@pytest.mark.parametrize(("release", "reason"), [("1.33", OLD_CONFLICT), ("1.34", CONFLICT), ("1.36", CONFLICT)])
def test_a_bound_volume_has_to_be_reached(release: str, reason: str) -> None:
    objects = (a_claim(volume="pv"), a_volume(zone="b"))
    assert list_reasons(use_claims("data"), *objects, release=parse_release(release)) == [(reason,), ()]


def test_a_bound_volume_may_be_reached_from_everywhere() -> None:
    assert list_reasons(use_claims("data"), a_claim(volume="pv"), a_volume()) == [(), ()]


def test_every_bound_volume_has_to_be_reached() -> None:
    objects = (a_claim("a", volume="pa"), a_volume("pa", zone="a"), a_claim("b", volume="pb"), a_volume("pb", zone="b"))
    assert list_reasons(use_claims("a", "b"), *objects) == [(CONFLICT,), (CONFLICT,)]
    anywhere = (a_claim("c", volume="pc"), a_volume("pc"))
    assert list_reasons(use_claims("c", "b"), *objects, *anywhere) == [(CONFLICT,), ()]


def test_a_bound_volume_that_is_gone_refuses_every_node() -> None:
    assert list_reasons(use_claims("data"), a_claim(volume="pv")) == [(NO_BOUND_VOLUME,), (NO_BOUND_VOLUME,)]


def test_a_bound_disk_that_a_driver_serves_now_has_the_zone_of_the_driver() -> None:
    volume = a_volume(csi=None, gcePersistentDisk={"pdName": "d"})
    affinity = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}}
    node = a_node("n1", labels={"topology.gke.io/zone": "a"})
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1", "annotations": annotations},
        "spec": {"drivers": []},
    }
    objects = (node, a_claim(volume="pv"), volume)
    assert list_reasons(use_claims("data"), *objects, csi_node)[0] == ()
    assert list_reasons(use_claims("data"), *objects)[0] == (CONFLICT,)


def test_reasons_of_bound_and_unbound_claims_come_together_in_kube_schedulers_order() -> None:
    free = (a_claim("free"), a_class(provisioner=""))
    reference = {"namespace": "default", "name": "bound"}
    conflict = (a_claim("bound", volume="pv"), a_volume(zone="b", claimRef=reference))
    assert list_reasons(use_claims("free", "bound"), *free, *conflict) == [(CONFLICT, NO_VOLUME), (NO_VOLUME,)]
    missing = a_claim("gone", volume="px")
    assert list_reasons(use_claims("gone", "free"), *free, missing)[0] == (NO_VOLUME, NO_BOUND_VOLUME)
    full = (a_claim("free"), a_class(), a_driver())
    assert list_reasons(use_claims("gone", "free"), *full, missing)[0] == (NO_SPACE, NO_BOUND_VOLUME)


@pytest.mark.parametrize("provisioner", ["", STATIC])
def test_a_class_without_a_provisioner_needs_a_free_volume(provisioner: str) -> None:
    objects = (a_claim(), a_class(provisioner=provisioner))
    assert list_reasons(use_claims("data"), *objects) == [(NO_VOLUME,), (NO_VOLUME,)]
    assert list_reasons(use_claims("data"), *objects, a_volume(zone="b")) == [(NO_VOLUME,), ()]


def test_each_claim_takes_a_volume_of_its_own() -> None:
    claims = (a_claim("a"), a_claim("b"), a_class(provisioner=STATIC))
    assert list_reasons(use_claims("a", "b"), *claims, a_volume("pa"))[0] == (NO_VOLUME,)
    assert list_reasons(use_claims("a", "b"), *claims, a_volume("pa"), a_volume("pb"))[0] == ()


def test_the_smallest_claim_chooses_first() -> None:
    """The large claim would take the only volume that the small one selects."""
    small = a_claim("small", size="1Gi", selector={"matchLabels": {"tier": "fast"}})
    fast, plain = a_volume("fast", size="6Gi"), a_volume("plain", size="7Gi")
    fast["metadata"]["labels"] = {"tier": "fast"}
    objects = (a_claim("large", size="5Gi"), small, a_class(provisioner=STATIC), fast, plain)
    assert list_reasons(use_claims("large", "small"), *objects) == [(), ()]


def test_a_claim_without_a_size_is_the_smallest() -> None:
    unsized = a_claim("unsized", size=None, selector={"matchLabels": {"tier": "fast"}})
    fast, plain = a_volume("fast", size="6Gi"), a_volume("plain", size="7Gi")
    fast["metadata"]["labels"] = {"tier": "fast"}
    objects = (a_claim("large", size="5Gi"), unsized, a_class(provisioner=STATIC), fast, plain)
    assert list_reasons(use_claims("large", "unsized"), *objects) == [(), ()]


def test_a_provisioner_makes_the_volume_that_is_missing() -> None:
    assert list_reasons(use_claims("data"), a_claim(), a_class()) == [(), ()]
    # One claim takes the volume that there is; the other one gets a new one.
    assert list_reasons(use_claims("a", "b"), a_claim("a"), a_claim("b"), a_class(), a_volume()) == [(), ()]


def name_zones(*zones: str) -> Object:
    return {"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}


@pytest.mark.parametrize(
    ("topologies", "reasons"),
    [
        ([], [(), ()]),
        ([name_zones("b", "c")], [(NO_VOLUME,), ()]),
        ([name_zones("a"), name_zones("b")], [(), ()]),
        ([name_zones("c")], [(NO_VOLUME,), (NO_VOLUME,)]),
    ],
)
def test_volumes_are_made_in_the_topologies_of_the_class(
    topologies: list[Object], reasons: list[tuple[str, ...]]
) -> None:
    assert list_reasons(use_claims("data"), a_claim(), a_class(allowedTopologies=topologies)) == reasons


@pytest.mark.parametrize(
    ("terms", "labels", "allows"),
    [
        ([], {}, True),
        ([{"zone": ["a"]}], {"zone": "a"}, True),
        ([{"zone": ["a"]}], {"zone": "b"}, False),
        ([{"zone": ["a"]}], {}, False),
        # Each condition of one term has to hold.
        ([{"zone": ["a"], "rack": ["r"]}], {"zone": "a", "rack": "r"}, True),
        ([{"zone": ["a"], "rack": ["r"]}], {"zone": "a"}, False),
        ([{"zone": ["b"]}, {"zone": ["a"]}], {"zone": "a"}, True),
        # A term without conditions allows nothing.
        ([{}], {"zone": "a"}, False),
    ],
)
def test_one_term_of_a_topology_has_to_hold(
    terms: list[dict[str, list[str]]], labels: dict[str, str], allows: bool
) -> None:
    topologies = [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]} for term in terms
    ]
    assert allows_topology(read_storage_class(a_class(allowedTopologies=topologies)), labels) is allows


@pytest.mark.parametrize(
    ("size", "objects", "reasons"),
    [
        ("10Gi", [a_driver(), a_capacity("10Gi", "a"), a_capacity("9Gi", "b")], [(), (NO_SPACE,)]),
        ("10Gi", [a_driver(), a_capacity("20Gi", "b")], [(NO_SPACE,), ()]),
        ("10Gi", [a_driver()], [(NO_SPACE,), (NO_SPACE,)]),
        ("1", [a_driver(), a_capacity("1", "a")], [(), (NO_SPACE,)]),
        # Half a byte needs a whole one.
        ("1500m", [a_driver(), a_capacity("1", "a"), a_capacity("2", "b")], [(NO_SPACE,), ()]),
        # Drivers that do not track capacity, and claims without a size.
        ("10Gi", [a_driver(tracks=False), a_capacity("1Gi", "a")], [(), ()]),
        ("10Gi", [a_capacity("1Gi", "a")], [(), ()]),
        (None, [a_driver()], [(), ()]),
        # Capacity of another class, of no amount, and with a smaller largest volume.
        ("10Gi", [a_driver(), a_capacity("10Gi", "a", storageClassName="other")], [(NO_SPACE,), (NO_SPACE,)]),
        ("10Gi", [a_driver(), a_capacity(None, "a")], [(NO_SPACE,), (NO_SPACE,)]),
        ("10Gi", [a_driver(), a_capacity("99Gi", "a", maximumVolumeSize="9Gi")], [(NO_SPACE,), (NO_SPACE,)]),
    ],
)
def test_a_driver_that_tracks_capacity_needs_enough_near_the_node(
    size: str | None, objects: list[Object], reasons: list[tuple[str, ...]]
) -> None:
    assert list_reasons(use_claims("data"), a_claim(size=size), a_class(), *objects) == reasons


def test_a_topology_comes_before_the_capacity() -> None:
    objects = (a_claim(), a_class(allowedTopologies=[name_zones("b")]), a_driver())
    assert list_reasons(use_claims("data"), *objects) == [(NO_VOLUME,), (NO_SPACE,)]


def choose_node(claim: Object, node: str) -> Object:
    return change(claim, annotations={"volume.kubernetes.io/selected-node": node})


def test_a_claim_with_a_node_chosen_gets_its_volume_there() -> None:
    claim = choose_node(a_claim(), "n2")
    assert list_reasons(use_claims("data"), claim, a_class()) == [(NO_VOLUME,), ()]
    # Its volume is being made: a free one will not do, and the class has to allow it.
    assert list_reasons(use_claims("data"), claim, a_class(provisioner=STATIC), a_volume())[1] == (NO_VOLUME,)
    assert list_reasons(use_claims("data"), claim, a_class(), a_driver())[1] == (NO_SPACE,)


def test_a_claim_with_a_node_chosen_leaves_the_free_volumes_to_others() -> None:
    chosen = choose_node(a_claim("chosen"), "n2")
    objects = (
        chosen,
        a_claim("free", storageClassName="static"),
        a_class(),
        a_class(provisioner=STATIC, name="static"),
    )
    volume = a_volume(storageClassName="static")
    assert list_reasons(use_claims("chosen", "free"), *objects, volume) == [(NO_VOLUME,), ()]
    assert list_reasons(use_claims("chosen", "free"), *objects) == [(NO_VOLUME,), (NO_VOLUME,)]


@pytest.mark.parametrize(
    ("claim", "unread", "missing"),
    [
        (a_claim(volume="pv"), [kinds.VOLUME_CLAIM], {kinds.VOLUME_CLAIM}),
        (a_claim(volume="pv"), [kinds.VOLUME], {kinds.VOLUME}),
        (a_claim(volume="pv"), [kinds.STORAGE_CLASS, kinds.CSI_DRIVER, kinds.STORAGE_CAPACITY], set()),
        (a_claim(), [kinds.STORAGE_CLASS], {kinds.STORAGE_CLASS}),
        (a_claim(), [kinds.CSI_DRIVER], {kinds.CSI_DRIVER}),
        (a_claim(), [kinds.STORAGE_CAPACITY, kinds.VOLUME], {kinds.STORAGE_CAPACITY, kinds.VOLUME}),
    ],
)
def test_what_cannot_be_read_is_left_open(claim: Object, unread: list[str], missing: set[str]) -> None:
    _, prepared = start(use_claims("data"), claim, a_class(), a_volume(), unread=tuple(unread))
    if missing:
        assert prepared == Unjudged("VolumeBinding", frozenset(missing))
    else:
        assert isinstance(prepared, VolumeBindingCheck)
