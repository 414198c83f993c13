"""The list of schedulers: the latest of each, its instances, and what changed from one observation to the next."""

from datetime import timedelta
from typing import Any

import orjson

from api.index.clusters import parse_schedulers
from schemas.codec.records import encode
from tests.support.builders.events import STARTED, a_scheduler_observed


def build_hit(minutes: int, scheduler: str = "hami-scheduler", **fields: Any) -> Any:
    event = a_scheduler_observed(scheduler=scheduler, observed_at=STARTED + timedelta(minutes=minutes), **fields)
    return {"_id": event.id, "_source": {"event": orjson.loads(encode(event).value)}}


def test_a_scheduler_is_listed_as_observed_last_with_what_changed() -> None:
    hits = [
        build_hit(9, instance="b", version="v2.9.1", settings={"policy": "spread", "level": "4"}, settings_digest="d2"),
        build_hit(5, instance="b", version="v2.9.0", settings={"policy": "binpack"}, settings_digest="d1"),
        build_hit(7, scheduler="kai-scheduler"),
        build_hit(0, instance="a", version="v2.9.0", settings={"policy": "binpack"}, settings_digest="d1"),
    ]
    hami, kai = parse_schedulers({"hits": {"hits": hits}})
    assert (kai.scheduler, kai.changes) == ("kai-scheduler", [])
    assert (hami.version, hami.settings, hami.settings_digest) == ("v2.9.1", {"policy": "spread", "level": "4"}, "d2")
    assert [(instance.instance, instance.version) for instance in hami.instances] == [("b", "v2.9.1"), ("a", "v2.9.0")]
    (change,) = hami.changes
    assert (change.version_before, change.version) == ("v2.9.0", "v2.9.1")
    assert [(setting.setting, setting.before, setting.after) for setting in change.settings] == [
        ("level", None, "4"),
        ("policy", "binpack", "spread"),
    ]


def test_a_cluster_without_observed_schedulers_has_an_empty_list() -> None:
    assert parse_schedulers({"hits": {"hits": []}}) == []
