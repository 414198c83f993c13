"""The scheduler publishes the settings that it was given, and its attempts name it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.hami.annotations import SCORING_WEIGHTS
from runtime.cli.installation import VERSION
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from runtime.settings.settings import read
from scheduler.assembly import describe_settings
from scheduler.settings import Settings
from schemas.codec.records import decode, encode
from schemas.events import AttemptConcluded
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.builders.spool_entries import NOW
from tests.support.harness.scheduler_app import Serving

KAFKA = read(KafkaConnectionIfGiven, kafka_bootstrap_servers="a:1")


def read_settings(**options: object) -> Settings:
    return read(Settings, **{"cluster": Path("cluster.yaml"), "insecure_http": True, "publish": False} | options)


def test_every_setting_in_force_is_published_by_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "scheduler-0")
    event = describe_settings(
        read_settings(node_policy="spread", cluster_name="east", pod_labels="team,app"), KAFKA, NOW
    )
    assert (event.cluster, event.scheduler, event.instance, event.version) == (
        "east", "hami-scheduler", "scheduler-0", VERSION,
    )  # fmt: skip
    expected = {
        "node-policy": "spread", "device-policy": "spread", "node-lock-timeout": "5m0s", "publish": "false",
        "leader-elect": "true", "listen": "127.0.0.1:8080", "pod-labels": "team,app", "cluster": "cluster.yaml",
        "kafka": "a:1", "kafka-security-protocol": "plaintext",
    }  # fmt: skip
    assert {name: event.settings[name] for name in expected} == expected
    assert "kubeconfig" not in event.settings
    record = encode(event)
    assert decode(record.value, record.headers) == event


def test_the_digest_follows_from_the_settings(tmp_path: Path) -> None:
    config = tmp_path / "device-config.yaml"
    config.write_text("nvidia: {}\n")
    first, again = (describe_settings(read_settings(device_config_file=config), KAFKA, NOW) for _ in range(2))
    config.write_text("nvidia: {resourceCountName: example.com/gpu}\n")
    edited = describe_settings(read_settings(device_config_file=config), KAFKA, NOW)
    spread = describe_settings(read_settings(device_config_file=config, node_policy="spread"), KAFKA, NOW)
    assert first == again
    assert len({event.settings_digest for event in (first, edited, spread)}) == 3


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[Serving]:
    started = Serving(tmp_path, a_node("node1", devices=1), settings_digest="0123456789abcdef", pod_labels=("team",))
    yield started
    await started.close()


async def test_conclusions_name_the_settings_and_describe_the_pod(serving: Serving) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    mine: Json = {"ownerReferences": [owner], "labels": {"team": "llm", "app": "x"}}
    # The third fails before any node is judged.
    broken = a_pod("broken", annotations={SCORING_WEIGHTS: "heavy", "other/use-gputype": "x"}, **mine)
    for pod in (a_pod("fits", **mine), a_pod("too-big", [a_container(gpus=9)], **mine), broken):
        await serving.filter(pod)
    ends = [event for event in serving.take_events() if isinstance(event, AttemptConcluded)]
    assert [bool(end.error) for end in ends] == [False, False, True]
    assert [end.constraints for end in ends] == [{}, {}, {SCORING_WEIGHTS: "heavy"}]
    for end in ends:
        assert end.settings_digest == "0123456789abcdef"
        assert end.description
        assert (end.description.workload, end.description.labels) == ("Job/train", {"team": "llm"})
