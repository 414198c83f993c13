"""The release of HAMi whose rules the API's devices follow."""

from datetime import timedelta

from api.index.clusters import choose_releases
from api.memory.cluster_devices import ClusterDevices
from engine.fit import device_config
from engine.hami.releases import HamiRelease, choose_rules
from schemas.events import SchedulerObserved
from tests.support.builders.events import STARTED
from tests.support.builders.node_states import a_node_state


def an_observation(cluster: str, hours: int, version: str = "", **settings: str) -> SchedulerObserved:
    return SchedulerObserved(
        cluster=cluster,
        scheduler="hami-scheduler",
        observed_at=STARTED + timedelta(hours=hours),
        implementation="HAMi" if version else "schedulerlog",
        version=version or "0.1.0",
        settings=settings,
        settings_digest="d",
    )


def test_the_latest_observation_of_each_cluster_counts() -> None:
    ours = an_observation("west", 3, **{"hami-version": "v2.11"})
    observed = [ours, an_observation("east", 2, "v2.11.0-rc1"), an_observation("east", 1, "v2.10.0")]
    release = HamiRelease(2, 11)
    assert choose_releases(observed) == {"west": release, "east": release}
    assert choose_releases([an_observation("east", 1), an_observation("west", 1, "unknown")]) == {}


def test_devices_are_judged_by_the_rules_of_their_clusters_release() -> None:
    devices, release = ClusterDevices(device_config.read_shipped()), HamiRelease(2, 11)
    assert not devices.follow({"default": HamiRelease(2, 9)}), "as v2.10"
    assert devices.follow({"default": release})
    assert not devices.follow({"default": release}), "nothing changed"
    devices.take(a_node_state("node1", 2), STARTED)
    devices.take(a_node_state("node1", 2).model_copy(update={"cluster": "other"}), STARTED)
    rules = {name: {vendor.rules for vendor in columns.vendors} for name, columns in devices.columns.items()}
    assert rules == {"default": {choose_rules(release)}, "other": {choose_rules(HamiRelease())}}


def test_states_are_forgotten_before_they_are_read_by_other_rules() -> None:
    devices = ClusterDevices(device_config.read_shipped())
    devices.take(a_node_state("node1", 2), STARTED)
    devices.is_caught_up, before = True, devices.revisions["default"]
    devices.forget()
    assert devices.find_columns("default") is None
    assert devices.revisions["default"] > before, "answers that were remembered are out of date"
    devices.take(a_node_state("node1", 2), STARTED)
    assert list(devices.columns) == ["default"]
