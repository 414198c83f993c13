"""Each fault is one finding that names the object, and a sound installation has none."""

import os
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from typer.testing import CliRunner

from cli.doctor import kafka
from cli.doctor.__main__ import app
from cli.doctor.certificates import check_expiry, check_names
from cli.doctor.cluster import check_images, check_version
from cli.doctor.devices import list_vendors_of_nodes, read_vendors
from cli.doctor.findings import Checkup, Fault, check_clock, to_json, to_text
from cli.doctor.opensearch import check_shards, check_templates
from cli.doctor.rights import RIGHTS
from cli.doctor.schedulers import (
    check_configuration,
    check_hami,
    check_plugins,
    check_releases,
    check_webhooks,
    find_configurations,
)
from runtime.cli.installation import VERSION
from runtime.http.certificate_authority import Authority
from runtime.kafka.inspection import KafkaAsItIs, TopicAsItIs
from runtime.kafka.topics import build_configuration
from schemas.indices import INDICES
from schemas.topics import TOPICS
from tests.support.builders.yaml_texts import write_doubling
from tests.support.control_plane.rights import list_granted

COMPONENTS = Path(__file__).parents[4] / "deploy/kustomize/components"
DEPLOYED = yaml.safe_load((COMPONENTS / "scheduler/kube-scheduler.yaml").read_text())
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize("process", sorted({*RIGHTS} - {"api", "certificate"}))
def test_the_rights_are_those_of_deploy(process: str) -> None:
    objects = [
        manifest for manifest in yaml.safe_load_all((COMPONENTS / process / "rights.yaml").read_text()) if manifest
    ]
    rights_of_deploy = {tuple(right) for right in list_granted(objects, f"schedulerlog-{process}")}
    assert {tuple(right) for right in RIGHTS[process]} == rights_of_deploy


def test_the_apis_rights_are_those_of_the_roles_that_it_is_given() -> None:
    rights = list(yaml.safe_load_all((COMPONENTS.parent / "base/rights.yaml").read_text()))
    roles = [right["roleRef"]["name"] for right in rights if right["kind"] == "ClusterRoleBinding"]
    assert roles == ["system:auth-delegator", "schedulerlog-diagnosis"]
    (rights_of_deploy,) = [
        right["rules"] for right in rights if right["metadata"]["name"] == "schedulerlog-diagnosis" and "rules" in right
    ]
    # As Kubernetes documents the first: token reviews and subject access reviews.
    resources = {resource for rule in rights_of_deploy for resource in rule["resources"]} | {
        "tokenreviews",
        "subjectaccessreviews",
    }
    assert {right.resource for right in RIGHTS["api"]} == resources


def test_the_rights_of_the_job_that_makes_the_certificate_are_those_of_deploy() -> None:
    objects = list(yaml.safe_load_all((COMPONENTS.parent / "base/certificate.yaml").read_text()))
    rights_of_deploy = {tuple(right) for right in list_granted(objects, "schedulerlog-certificate")}
    assert {tuple(right) for right in RIGHTS["certificate"]} == rights_of_deploy


def test_no_account_with_rights_is_left_out() -> None:
    # More rights of an account that has some; attempts name what they would add.
    others = {"api", "certificate", "hami", "aggregated-api", "kube-events-objects", "kube-events-workloads"}
    assert {path.parent.name for path in COMPONENTS.glob("*/rights.yaml")} | others == {*RIGHTS} | others


NO_NODES = list_vendors_of_nodes([], read_vendors([]))


def test_the_configuration_that_deploy_ships_is_sound() -> None:
    assert list(check_configuration("x", DEPLOYED, NO_NODES)) == []


def change(**fields: Any) -> dict[str, Any]:
    configuration: dict[str, Any] = deepcopy(DEPLOYED)
    configuration["extenders"][0] |= fields
    return configuration


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (DEPLOYED | {"percentageOfNodesToScore": 50}, "percentageOfNodesToScore is 50"),
        ({k: v for k, v in DEPLOYED.items() if k != "percentageOfNodesToScore"}, "percentageOfNodesToScore is not set"),
        (change(nodeCacheCapable=False), "nodeCacheCapable is not true"),
        (change(urlPrefix="127.0.0.1:443"), "urlPrefix is '127.0.0.1:443'"),
        (change(urlPrefix="https://127.0.0.1:443"), "urlPrefix is https:// and enableHTTPS is false"),
        (change(bindVerb=""), "filterVerb or bindVerb is missing"),
        (
            change(managedResources=DEPLOYED["extenders"][0]["managedResources"][:4]),
            "managedResources lacks nvidia.com/priority",
        ),
        (
            change(managedResources=[{"name": "nvidia.com/gpu"}, *DEPLOYED["extenders"][0]["managedResources"][1:]]),
            "does not ignore nvidia.com/gpu",
        ),
    ],
)
def test_a_setting_of_kube_scheduler_that_hides_reasons_is_a_finding(configuration: Any, problem: str) -> None:
    assert [finding.problem for finding in check_configuration("x", configuration, NO_NODES)] == [problem]


def test_a_configuration_is_found_in_its_config_map_and_other_content_is_passed_over() -> None:
    data = {"config.yaml": yaml.safe_dump(DEPLOYED), "other": "KubeSchedulerConfiguration: [", "text": "x"}
    # L9: a text of 2 kB that would become 2^40 values.
    data["long"] = f"# KubeSchedulerConfiguration\n{write_doubling(40, '').decode()}"
    config_map = {"metadata": {"namespace": "kube-system", "name": "hami-scheduler"}, "data": data}
    assert [name for name, _ in find_configurations(config_map)] == ["kube-system/hami-scheduler config.yaml"]


def make_hami_deployment(image: str, *words: str) -> dict[str, Any]:
    container = {"name": "vgpu-scheduler-extender", "image": image, "command": ["scheduler", *words]}
    metadata = {"namespace": "kube-system", "name": "hami-scheduler"}
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    ("deployment", "problems"),
    [
        (make_hami_deployment("projecthami/hami:v2.10.0", "-v=4"), 0),
        (make_hami_deployment("projecthami/hami:v2.10.0", "-v=2"), 1),
        (make_hami_deployment("projecthami/hami:v2.10.0"), 1),
        (make_hami_deployment("projecthami/hami:v2.4.1", "-v=5"), 1),
        (make_hami_deployment("projecthami/hami:v2.11.0", "-v=5"), 1),
        (make_hami_deployment("ghcr.io/schedulerlog/schedulerlog:0.1.0"), 0),
    ],
)
def test_what_hami_logs_is_looked_at(deployment: Any, problems: int) -> None:
    assert len(list(check_hami(deployment))) == problems


def make_plugin(image: str, nodes: int, **selector: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "device-plugin", "image": image}], "nodeSelector": selector}
    status = {"observedGeneration": 1, "desiredNumberScheduled": nodes}
    metadata = {"namespace": "kube-system", "name": "hami-device-plugin"}
    return {"metadata": metadata, "spec": {"template": {"spec": spec}}, "status": status}


@pytest.mark.parametrize(
    ("plugin", "problems"),
    [
        (make_plugin("projecthami/hami:v2.9.1", 3, gpu="on"), []),
        (
            make_plugin("projecthami/hami:v2.9.1", 0, gpu="on"),
            ["the device plugin selects no node (nodeSelector gpu=on)"],
        ),
        (
            make_plugin("projecthami/hami:v2.8.0", 3),
            ["the device plugin is projecthami/hami:v2.8.0, the scheduler projecthami/hami:v2.9.0"],
        ),
    ],
)
def test_hamis_device_plugin_runs_on_nodes_in_the_version_of_its_scheduler(plugin: Any, problems: list[str]) -> None:
    scheduler = make_hami_deployment("projecthami/hami:v2.9.0", "-v=4")
    assert [fault.problem for fault in check_plugins([plugin], [scheduler])] == problems
    # A scheduler of ours in its place has versions of its own.
    ours = make_hami_deployment("ghcr.io/schedulerlog/schedulerlog:0.1.0")
    assert len(list(check_plugins([plugin], [ours]))) == len([text for text in problems if "selects" in text])


def test_two_releases_of_hami_are_a_finding() -> None:
    first, second = (make_hami_deployment("projecthami/hami:v2.9.0", "-v=4") for _ in range(2))
    second["metadata"] = {"namespace": "hami", "name": "second-hami-scheduler"}
    assert list(check_releases([first])) == []
    (fault,) = check_releases([first, second])
    assert fault.about == "kube-system/hami-scheduler, hami/second-hami-scheduler"


@pytest.mark.parametrize(
    ("hooks", "problem"),
    [
        ([{"name": "vgpu.hami.io", "clientConfig": {"caBundle": "LS0t"}}], None),
        ([{"name": "vgpu.hami.io", "clientConfig": {}}], "vgpu.hami.io has no caBundle"),
        ([{"name": "mpod.kb.io", "clientConfig": {}}], "no MutatingWebhookConfiguration has vgpu.hami.io"),
    ],
)
def test_hamis_webhook_is_there_and_trusted(hooks: Any, problem: str | None) -> None:
    configurations = [{"metadata": {"name": "hami-webhook"}, "webhooks": hooks}]
    faults = list(check_webhooks(configurations, [make_hami_deployment("projecthami/hami:v2.9.0", "-v=4")]))
    assert [fault.problem.startswith(problem or "-") for fault in faults] == ([True] if problem else [])


def test_a_shard_of_more_than_50_gb_is_a_finding() -> None:
    rows: list[dict[str, str | None]] = [
        {"index": "schedulerlog-attempts-2026.11.26", "pri": "2", "pri.store.size": "99000000000"},
        {"index": "schedulerlog-devices-2026.11.26", "pri": "1", "pri.store.size": "120000000000"},
        {"index": "schedulerlog-attempts-2026.10.01", "pri": "1", "pri.store.size": None},
    ]
    (fault,) = check_shards(rows)
    assert fault.about == "schedulerlog-devices-2026.11.26"
    assert fault.problem == "a shard has 120 GB, more than 50"
    assert "SCHEDULERLOG_INDEX_SHARDS to 3" in fault.remedy


def make_sound() -> KafkaAsItIs:
    topics = {topic.name: TopicAsItIs(topic.partitions, 3, 3, build_configuration(topic)) for topic in TOPICS}
    return KafkaAsItIs(3, topics)


def with_topic(name: str, **fields: Any) -> KafkaAsItIs:
    topics = make_sound()
    return replace(topics, topics=dict(topics.topics) | {name: replace(topics.topics[name], **fields)})


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (with_topic("schedulerlog.decisions", partitions=6), "has 6 partitions, not 12"),
        (with_topic("schedulerlog.attempts", replicas=1, in_sync=1), "has one replica, although there are 3 brokers"),
        (with_topic("schedulerlog.alerts", in_sync=2), "a partition has 2 of its 3 replicas in sync"),
    ],
)
def test_a_topic_that_is_not_as_it_should_be_is_a_finding(state: KafkaAsItIs, problem: str) -> None:
    (fault,) = kafka.compare_topics(state)
    assert fault.problem.startswith(problem)


def test_sound_topics_are_no_finding() -> None:
    assert list(kafka.compare_topics(make_sound())) == []


def test_topics_of_a_small_cluster_are_no_finding() -> None:
    topics = {
        name: replace(topic, partitions=min(topic.partitions, 3), replicas=1, in_sync=1)
        for name, topic in make_sound().topics.items()
    }
    assert list(kafka.compare_topics(KafkaAsItIs(1, topics))) == []


def test_a_template_that_is_missing_or_of_another_version_is_a_finding() -> None:
    old = {"name": "schedulerlog-attempts", "index_template": {"_meta": {"schedulerlog_mapping_version": 1}}}
    problems = {finding.about: finding.problem for finding in check_templates({"index_templates": [old]})}
    assert problems["schedulerlog-attempts"].startswith("the index template has mapping version 1")
    assert problems["schedulerlog-findings"] == "the index template is missing"


def test_what_is_missing_altogether_is_one_finding() -> None:
    (topics,) = kafka.compare_topics(KafkaAsItIs(3, {}))
    (templates,) = check_templates({"index_templates": []})
    assert (topics.about, topics.problem) == ("topics", f"none of the {len(TOPICS)} is there")
    assert (templates.about, templates.problem) == ("index templates", f"none of the {len(INDICES)} is there")
    assert all("schedulerlog pipeline provision" in fault.remedy for fault in (topics, templates))


def make_certificate() -> x509.Certificate:
    pem, _ = Authority.create("tests").issue("server", ("kafka.example", "*.brokers.example", "127.0.0.1"))
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize(
    ("host", "findings"),
    [("kafka.example", 0), ("127.0.0.1", 0), ("b1.brokers.example", 0), ("a.b.brokers.example", 1), ("other", 1)],
)
def test_a_certificate_has_to_name_the_address(host: str, findings: int) -> None:
    assert len(list(check_names("x", make_certificate(), host))) == findings


@pytest.mark.parametrize(
    ("before_the_end", "problem"),
    [
        (timedelta(days=30), ""),
        (timedelta(days=13), "the certificate expires on"),
        (timedelta(days=-1), "the certificate expired on"),
        (timedelta(days=370), "the certificate is valid from"),
    ],
)
def test_a_certificate_is_reported_before_it_expires(before_the_end: timedelta, problem: str) -> None:
    faults = list(check_expiry("x", make_certificate(), make_certificate().not_valid_after_utc - before_the_end))
    assert [finding.problem.startswith(problem) for finding in faults] == [True] * bool(problem)


@pytest.mark.parametrize(("seconds", "findings"), [(0, 0), (-1, 0), (5, 1), (-5, 1)])
def test_a_clock_that_is_wrong_by_seconds_is_a_finding(seconds: int, findings: int) -> None:
    faults = check_clock("x", NOW + timedelta(seconds=seconds), NOW, NOW + timedelta(milliseconds=20))
    assert len(list(faults)) == findings


@pytest.mark.parametrize(
    ("image", "findings"),
    [
        (f"ghcr.io/schedulerlog/schedulerlog:{VERSION}", 0),
        ("registry.example:5000/schedulerlog:0.0.1", 1),
        ("registry.k8s.io/kube-scheduler:v1.36.3", 0),
        ("registry.k8s.io/kube-scheduler:v1.35.0", 0),
        ("registry.k8s.io/kube-scheduler:v1.34.0", 1),
        ("registry.k8s.io/kube-scheduler:v1.37.0", 1),
    ],
)
def test_versions_have_to_fit(image: str, findings: int) -> None:
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"image": image}]}}
    assert len(list(check_images([pod], {"minor": "36+"}))) == findings


def test_an_old_api_server_is_a_finding() -> None:
    assert len(list(check_version({"minor": "27"}))) == 1
    assert list(check_version({"minor": "36"})) == []


def test_a_report_names_the_problem_and_the_remedy() -> None:
    report = Checkup([Fault("kafka", "a topic", "is missing", "Make it.")], ["Kafka"], ["OpenSearch: not named"])
    assert to_text(report).splitlines() == [
        "kafka: a topic: is missing", "    Make it.", "not checked: OpenSearch: not named", "checked: Kafka; 1 finding",
    ]  # fmt: skip
    assert '"remedy": "Make it."' in to_json(report)


def test_where_no_setting_names_anything_to_check_the_answer_is_not_that_nothing_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith(("SCHEDULERLOG_", "KUBERNETES_"))]:
        monkeypatch.delenv(name)
    answer = CliRunner().invoke(app, [])
    assert answer.exit_code == 2
    assert answer.stdout.splitlines() == [
        "not checked: Kafka: SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set",
        "not checked: OpenSearch: SCHEDULERLOG_OPENSEARCH_URL is not set",
        "not checked: Kubernetes: no --kubeconfig, and this is not a pod",
        "nothing was checked",
    ]
