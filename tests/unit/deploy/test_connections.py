"""Selectors of deploy/kustomize: Services, budgets, scrapes, scaling, and what network policies let through."""

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from api.settings import Settings as ApiSettings
from pipeline.__main__ import index
from pipeline.settings import IndexSettings, PlacementsSettings, WorkerSettings
from runtime.telemetry.tracing import TracingSettings
from schemas.topics import TOPICS

KUSTOMIZE = Path(__file__).parents[3] / "deploy" / "kustomize"
OURS = "ghcr.io/schedulerlog/schedulerlog"


def read_documents(pattern: str = "**/*.yaml") -> list[dict[str, Any]]:
    texts = (path.read_text() for path in sorted(KUSTOMIZE.glob(pattern)))
    return [
        document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader) if isinstance(document, dict)
    ]


ALL = read_documents()


def select_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for document in ALL if document.get("kind") in kinds]


def iterate_templates() -> Iterator[dict[str, Any]]:
    for document in select_kind("Deployment", "StatefulSet", "Job", "CronJob"):
        spec = document["spec"]
        template = spec.get("jobTemplate", {}).get("spec", spec)["template"]
        if any(container.get("image") == OURS for container in template["spec"]["containers"]):
            yield template


def get_component(template: dict[str, Any]) -> str:
    return str(template["metadata"]["labels"]["app.kubernetes.io/component"])


def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Tell whether the selector matches, as Kubernetes reads ``matchLabels`` and ``matchExpressions`` (operator In)."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        labels.get(rule["key"]) in rule["values"] for rule in selector.get("matchExpressions", ())
    )


def list_port_names(template: dict[str, Any]) -> set[str]:
    return {port["name"] for container in template["spec"]["containers"] for port in container.get("ports", ())}


@pytest.mark.parametrize(
    "service",
    [document for document in select_kind("Service") if document["metadata"]["name"].startswith("schedulerlog-")],
    ids=lambda document: str(document["metadata"]["name"]),
)
def test_a_service_leads_to_pods_that_have_its_port(service: Any) -> None:
    selected = [
        template
        for template in iterate_templates()
        if matches({"matchLabels": service["spec"]["selector"]}, template["metadata"]["labels"])
    ]
    assert selected
    assert all(any(port["targetPort"] in list_port_names(pod) for pod in selected) for port in service["spec"]["ports"])


def test_prometheus_scrapes_every_process_that_has_metrics() -> None:
    (monitor,) = select_kind("ServiceMonitor")
    services = [
        item
        for item in select_kind("Service")
        if matches(monitor["spec"]["selector"], item["metadata"].get("labels", {}))
    ]
    (service,) = services
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} == {
        port["name"] for port in service["spec"]["ports"]
    }
    scraped = {
        get_component(template)
        for template in iterate_templates()
        if matches({"matchLabels": service["spec"]["selector"]}, template["metadata"]["labels"])
        and "metrics" in list_port_names(template)
    }
    assert scraped == {
        "worker", "index", "placements", "alerts", "api", "events", "alertmanager", "scheduler", "kube-events",
        "hami-log", "kai-log", "raw-logs", "notify",
    }  # fmt: skip


def test_a_budget_is_about_pods_that_there_are() -> None:
    budgets = select_kind("PodDisruptionBudget")
    protected = {
        get_component(template) for budget in budgets for template in iterate_templates()
        if matches(budget["spec"]["selector"], template["metadata"]["labels"])
    }  # fmt: skip
    assert len(protected) == len(budgets) == 13


def test_keda_counts_the_lag_of_the_group_that_reads_the_topic_up_to_one_process_for_each_partition() -> None:
    groups = {
        "schedulerlog-worker": WorkerSettings.model_fields["consumer_group"].default,
        "schedulerlog-index": signature(index).parameters["group"].default,
    }
    partitions = {topic.name: topic.partitions for topic in TOPICS}
    workloads = {
        (document["kind"], document["metadata"]["name"]) for document in select_kind("Deployment", "StatefulSet")
    }
    scaled = select_kind("ScaledObject")
    assert len(scaled) == 2
    for document in scaled:
        target, (trigger,) = document["spec"]["scaleTargetRef"], document["spec"]["triggers"]
        assert (target["kind"], target["name"]) in workloads
        assert trigger["metadata"]["consumerGroup"] == groups[target["name"]]
        assert partitions[trigger["metadata"]["topic"]] == document["spec"]["maxReplicaCount"]
        # The oldest client that Kafka 4 serves, by KIP-896; KEDA's definition wants texts.
        version = trigger["metadata"]["version"]
        assert tuple(map(int, version.split("."))) >= (2, 1)


KEDA_WAYS = {"kafka-certificate": "tls/kafka-certificate", "kafka-scram": "tls/kafka-scram", "strimzi": "strimzi"}
"""Components that give KEDA credentials, and those by which the processes have them."""
SETTINGS_OF_PARAMETERS = {"ca": "CA_FILE", "cert": "CERT_FILE", "key": "KEY_FILE", "password": "PASSWORD_FILE"}


def list_literals(component: str) -> dict[str, str]:
    """List the settings that a component writes into the ConfigMap."""
    (document,) = read_documents(f"components/{component}/kustomization.yaml")
    (generator,) = document["configMapGenerator"]
    return dict(line.split("=", 1) for line in generator["literals"])


def list_mounted_files(workload: str) -> dict[tuple[str, str], str]:
    """List the files of the volume `kafka` by Secret and key; a Secret without `items` gives each key its own name."""
    (document,) = [item for item in select_kind("Deployment", "StatefulSet") if item["metadata"]["name"] == workload]
    (volume,) = [item for item in document["spec"]["template"]["spec"]["volumes"] if item["name"] == "kafka"]
    keys = ("ca.crt", "tls.crt", "tls.key", "password")
    return {
        (source["secret"]["name"], item["key"]): item["path"]
        for source in volume["projected"]["sources"]
        for item in source["secret"].get("items", [{"key": key, "path": key} for key in keys])
    }


def get_authentications(way: str) -> dict[str, dict[str, Any]]:
    """Get the TriggerAuthentication of each workload that KEDA scales, by the patches of the component."""
    documents = read_documents(f"components/keda-tls/{way}/*.yaml")
    specs = {item["metadata"]["name"]: item["spec"] for item in documents if item["kind"] == "TriggerAuthentication"}
    (kustomization,) = [item for item in documents if item["kind"] == "Component"]
    assert kustomization["components"] == ["../../keda", "../../labels"]
    authentications = {}
    for patch in kustomization["patches"]:
        added = {operation["path"]: operation["value"] for operation in yaml.safe_load(patch["patch"])}
        assert added.pop("/spec/triggers/0/metadata/tls") == "enable"
        for document in select_kind("ScaledObject"):
            if re.fullmatch(patch["target"]["name"], document["metadata"]["name"]):
                authentications[document["metadata"]["name"]] = specs[
                    added["/spec/triggers/0/authenticationRef"]["name"]
                ] | {"added": added}
    return authentications


@pytest.mark.parametrize(("way", "component"), KEDA_WAYS.items())
def test_keda_has_the_credentials_of_the_process_that_it_scales(way: str, component: str) -> None:
    settings = list_literals(component)
    authentications = get_authentications(way)
    assert authentications.keys() == {"schedulerlog-worker", "schedulerlog-index"}
    for workload, spec in authentications.items():
        mounted = list_mounted_files(workload)
        files = {
            SETTINGS_OF_PARAMETERS[item["parameter"]]: f"/etc/schedulerlog/kafka/{mounted[item['name'], item['key']]}"
            for item in spec["secretTargetRef"]
        }
        prefix = "SCHEDULERLOG_KAFKA_"
        assert files == {name.removeprefix(prefix): value for name, value in settings.items() if name.endswith("_FILE")}
        # The names that KEDA gives Kafka's mechanisms.
        mechanism = settings.get(f"{prefix}SASL_MECHANISM")
        assert spec["added"].get("/spec/triggers/0/metadata/sasl") == {"SCRAM-SHA-512": "scram_sha512"}.get(
            mechanism or ""
        )
        usernames = [item["name"] for item in spec.get("env", ()) if item["parameter"] == "username"]
        assert usernames == [name for name in settings if name == f"{prefix}USERNAME"]


def get_policy_spec(name: str) -> dict[str, Any]:
    (document,) = [item for item in select_kind("NetworkPolicy") if item["metadata"]["name"] == f"schedulerlog-{name}"]
    spec: dict[str, Any] = document["spec"]
    return spec


def select_components(name: str) -> set[str]:
    return {
        get_component(template)
        for template in iterate_templates()
        if matches(get_policy_spec(name)["podSelector"], template["metadata"]["labels"])
    }


def lets_out(name: str, port: int) -> bool:
    ports = [span for rule in get_policy_spec(name)["egress"] for span in rule.get("ports", ())]
    return any(
        isinstance(span["port"], int) and span["port"] <= port <= span.get("endPort", span["port"]) for span in ports
    )


def list_ports(setting: str) -> set[int]:
    """List the ports that settings of deploy/ name."""
    texts = [(KUSTOMIZE / "base/settings.env").read_text().splitlines()]
    texts += [
        source["literals"]
        for document in ALL
        for source in document.get("configMapGenerator", ())
        if "literals" in source
    ]
    values = [line.partition("=")[2] for lines in texts for line in lines if line.startswith(f"{setting}=")]
    return {urlsplit(value if "://" in value else f"//{value}").port or 0 for value in values}


def test_nothing_is_let_through_that_no_policy_names() -> None:
    everybody = {get_component(template) for template in iterate_templates()}
    assert select_components("default") == select_components("dns") == everybody
    assert get_policy_spec("default").keys() == {"podSelector", "policyTypes"}


def test_kafka_is_reached_by_those_that_use_it() -> None:
    users = {document["metadata"]["name"].removeprefix("schedulerlog-") for document in select_kind("KafkaUser")}
    assert select_components("kafka") == users | {"provision"}
    ports = list_ports("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS")
    assert len(ports) > 1
    assert all(lets_out("kafka", port) for port in ports)


def has_token_in_secret(template: dict[str, Any]) -> bool:
    """Tell whether the pod mounts the token of an account that is not its own."""
    secrets = [volume.get("secret", {}).get("secretName", "") for volume in template["spec"].get("volumes", ())]
    return any(name.endswith("-token") for name in secrets)


def test_those_that_have_a_right_there_reach_the_api_server() -> None:
    with_token = {
        get_component(template)
        for template in iterate_templates()
        if template["spec"].get("automountServiceAccountToken") or has_token_in_secret(template)
    }
    assert select_components("api-server") == with_token
    assert all(lets_out("api-server", port) for port in (443, 6443))


def test_those_that_have_a_user_of_opensearch_reach_it() -> None:
    users = {
        get_component(template) for template in iterate_templates()
        for variable in template["spec"]["containers"][0].get("env", ()) if "OPENSEARCH" in variable["name"]
    }  # fmt: skip
    assert users == {"index", "placements", "api", "provision", "retention", "roles", "policies"}
    assert select_components("opensearch") == users
    ports = list_ports("SCHEDULERLOG_OPENSEARCH_URL")
    assert ports == {9200}
    assert all(lets_out("opensearch", port) for port in ports)


def test_those_that_make_spans_reach_a_collector() -> None:
    settings = {"worker": WorkerSettings, "index": IndexSettings, "placements": PlacementsSettings, "api": ApiSettings}
    with_spans = {name for name, kind in settings.items() if issubclass(kind, TracingSettings)}
    # The scheduler takes them next to its own settings; docs/operations.md has the same four.
    assert select_components("otlp") == with_spans | {"scheduler"} == {"worker", "index", "api", "scheduler"}
    # The port of OTLP over HTTP, not that of gRPC, as OpenTelemetry's specification of the protocol has them.
    assert lets_out("otlp", 4318)
    assert not lets_out("otlp", 4317)


@pytest.mark.parametrize("name", ["api", "mcp", "metrics"])
def test_callers_reach_the_port_that_is_theirs(name: str) -> None:
    (rule,) = get_policy_spec(name)["ingress"]
    assert [port["port"] for port in rule["ports"]] == [name]
    assert all(
        name in list_port_names(template)
        for template in iterate_templates()
        if get_component(template) in {"api", "mcp"} & {name}
    )


def test_each_client_of_others_reaches_the_address_that_it_is_given() -> None:
    urls = {
        get_component(template): word.partition("=")[2]
        for template in iterate_templates()
        for word in template["spec"]["containers"][0]["args"]
        if word.startswith("--url=")
    }
    assert urls.keys() == {"alertmanager", "dashboards"}
    assert all(lets_out(name, urlsplit(url).port or 443) for name, url in urls.items())
    (to_api,) = [rule for rule in get_policy_spec("mcp")["egress"] if rule["ports"] == [{"port": "api"}]]
    assert matches(
        to_api["to"][0]["podSelector"], {"app.kubernetes.io/name": "schedulerlog", "app.kubernetes.io/component": "api"}
    )
