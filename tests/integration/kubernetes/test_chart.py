"""The chart of deploy/helm: the objects of kustomize, which the API server takes; wrong values are refused."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.chart import CHART, EXAMPLES, IMAGE, Helm, to_flags
from tests.support.control_plane.deployed import (
    KUSTOMIZE,
    NAMESPACE,
    OVERLAYS,
    apply,
    build,
    combine,
    define_others_kinds,
    emptied,
    list_pod_templates,
    select_kinds,
)
from tests.support.control_plane.problems import FOREIGN, identify, list_problems

OWN_NAMESPACE = "gpu-observability"
AS_KUSTOMIZE = (
    "image.repository=ghcr.io/schedulerlog/schedulerlog", "image.pullSecrets=null", "clusterName=default",
)  # fmt: skip
"""Values in which an example differs from its overlay, back to what the overlay has."""
ADDED_LABELS = {
    "helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
}  # fmt: skip
ALL = tuple(
    f"{name}=true"
    for name in (
        "sources.kubeEvents.objects", "sources.kubeEvents.workloads", "sources.hami.enabled", "sources.kai.enabled",
        "sources.rawLogs.enabled", "scheduler.enabled", "events.enabled", "diagnosis.nodes", "diagnosis.owners",
        "diagnosis.kueue", "diagnosis.volcano", "diagnosis.kai", "diagnosis.koordinator", "diagnosis.podGroups",
        "alertmanager.enabled", "dashboards.enabled", "mcp.enabled",
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    define_others_kinds(control_plane)
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (NAMESPACE, OWN_NAMESPACE)
    ]
    with emptied(control_plane):
        apply(control_plane, namespaces)
        yield control_plane


def from_kustomize(objects: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Compare by what is not kustomize's own: labels, the hash of a ConfigMap's name, and the Namespace."""
    items = [item for item in objects if item["kind"] != "Namespace"]
    text = json.dumps(items)
    for name in (item["metadata"]["name"] for item in select_kinds(items, "ConfigMap")):
        text = text.replace(f'"{name}"', f'"{name.rpartition("-")[0]}"')
    items = json.loads(text)
    for item in select_kinds(items, "ConfigMap"):
        item["metadata"].pop("annotations", None)
    for item in items:
        for label in ADDED_LABELS & item["metadata"]["labels"].keys():
            del item["metadata"]["labels"][label]
    return {identify(item): item for item in items}


def from_helm(objects: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Compare by what is not Helm's own: labels, sums of settings, the hash of a Job's name."""
    for item in objects:
        metadata, spec = item["metadata"], item.get("spec", {})
        for label in ADDED_LABELS:
            del metadata["labels"][label]
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template and metadata["name"].startswith("schedulerlog"):
            assert template["metadata"].pop("annotations")["checksum/settings"]
        if item["kind"] == "Job":
            metadata["name"], _, suffix = metadata["name"].rpartition("-")
            assert re.fullmatch("[0-9a-f]{8}", suffix)
    return {identify(item): item for item in objects}


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay != "demo"])
def test_the_example_of_an_overlay_is_that_overlay(cluster: ControlPlane, helm: Helm, overlay: str) -> None:
    rendered = from_helm(helm.render(*to_flags(overlay, *AS_KUSTOMIZE)))
    built = from_kustomize(build(cluster, KUSTOMIZE / "overlays" / overlay))
    if overlay == "spoke":
        # Sources reach no OpenSearch, and their values name none.
        data = built["ConfigMap", NAMESPACE, "schedulerlog"]["data"]
        for name in [name for name in data if "_OPENSEARCH_" in name]:
            del data[name]
    assert rendered.keys() == built.keys()
    assert [(rendered[key], built[key]) for key in built if rendered[key] != built[key]] == []


def test_the_ways_to_the_api_are_those_of_the_components(cluster: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    host = "schedulerlog.example.com"
    values = (
        "api.service.type=NodePort", "api.ingress.enabled=true", f"api.ingress.host={host}",
        "api.ingress.tlsSecret=schedulerlog-ingress-tls", "api.gateway.enabled=true", f"api.gateway.host={host}",
        "api.proxy.enabled=true",
    )  # fmt: skip
    rendered = from_helm(helm.render(*to_flags("observe", *AS_KUSTOMIZE, *values)))
    names = ["node-port", "ingress", "gateway", "authenticating-proxy"]
    built = from_kustomize(build(cluster, combine(tmp_path / "ways", KUSTOMIZE / "overlays/observe", names)))
    assert rendered == built
    apply(cluster, [*rendered.values()], "--dry-run=server", "--force-conflicts")
    in_others = helm.render(*to_flags("observe", *values, "api.gateway.namespace=gateways"))
    (route,) = select_kinds(in_others, "HTTPRoute")
    assert route["spec"]["parentRefs"] == [{"name": "gateway", "namespace": "gateways"}]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_api_server_takes_the_objects_of_every_example(cluster: ControlPlane, helm: Helm, example: str) -> None:
    objects = helm.render(*to_flags(example))
    assert list(list_problems(objects, NAMESPACE)) == []
    apply(cluster, objects, "--dry-run=server", "--force-conflicts")


@pytest.mark.parametrize("example", ["production", "strimzi"])
def test_everything_at_once_in_another_namespace_lacks_nothing(cluster: ControlPlane, helm: Helm, example: str) -> None:
    objects = helm.render(*to_flags(example, *ALL), namespace=OWN_NAMESPACE)
    assert list(list_problems(objects, OWN_NAMESPACE)) == []
    foreign = {item["metadata"].get("namespace") for item in objects} - {OWN_NAMESPACE, None}
    assert foreign <= FOREIGN
    apply(cluster, objects, "--dry-run=server", "--force-conflicts")


def test_keda_scales_by_a_kafka_that_asks_for_no_credentials(cluster: ControlPlane, helm: Helm) -> None:
    objects = helm.render(*to_flags("production", "kafka.securityProtocol=plaintext", "keda.enabled=true"))
    scaled = {item["spec"]["scaleTargetRef"]["name"] for item in select_kinds(objects, "ScaledObject")}
    assert scaled == {"schedulerlog-worker", "schedulerlog-index"}
    apply(cluster, objects, "--dry-run=server", "--force-conflicts")


@pytest.mark.parametrize(
    ("way", "example", "values"),
    [
        ("kafka-certificate", "production", ["kafka.securityProtocol=ssl"]),
        ("kafka-scram", "production", ["kafka.securityProtocol=sasl_ssl"]),
        ("strimzi", "strimzi", []),
    ],
)
def test_keda_has_the_credentials_that_the_component_gives_it(
    cluster: ControlPlane, helm: Helm, tmp_path: Path, way: str, example: str, values: list[str]
) -> None:
    kinds = ("ScaledObject", "TriggerAuthentication")
    objects = from_helm(helm.render(*to_flags(example, *AS_KUSTOMIZE, *values, "keda.enabled=true")))
    rendered = {key: item for key, item in objects.items() if item["kind"] in kinds}
    folder = combine(tmp_path / way, KUSTOMIZE / "overlays/production", [f"keda-tls/{way}"])
    built = from_kustomize(select_kinds(build(cluster, folder), *kinds))
    assert rendered == built
    apply(cluster, [*rendered.values()], "--dry-run=server", "--force-conflicts")


def test_every_pod_gets_the_image_its_pull_secrets_and_the_size(helm: Helm) -> None:
    digest = f"sha256:{'0' * 64}"
    objects = helm.render(*to_flags("production", *ALL, f"image.digest={digest}", "size=small"))
    images = {container["image"] for _, spec in list_pod_templates(objects) for container in spec["containers"]}
    assert images == {f"registry.example.com/gpu/schedulerlog@{digest}", "registry.k8s.io/kube-scheduler:v1.36.3"}
    accounts = select_kinds(objects, "ServiceAccount")
    assert all(account["imagePullSecrets"] == [{"name": "schedulerlog-pull"}] for account in accounts)
    memory = {}
    for size in ("small", "medium", "large"):
        rendered = helm.render(*to_flags("production", *ALL, f"size={size}", "resources.index.requests.memory=3Gi"))
        specs = {name: spec["containers"][0]["resources"] for name, spec in list_pod_templates(rendered)}
        memory[size] = {name: resources["requests"]["memory"] for name, resources in specs.items()}
        assert specs["Deployment/schedulerlog-index"]["limits"]["memory"]
        # A size leaves the disk to the manifests.
        kinds = ("requests", "limits")
        assert all("ephemeral-storage" in amounts[kind] for amounts in specs.values() for kind in kinds)
    assert {sizes["Deployment/schedulerlog-index"] for sizes in memory.values()} == {"3Gi"}
    assert [sizes["StatefulSet/schedulerlog-worker"] for sizes in memory.values()] == ["160Mi", "512Mi", "1Gi"]


def sum_settings(helm: Helm, *values: str) -> dict[str, str]:
    objects = helm.render(*to_flags("production", *ALL, *values))
    return {
        item["metadata"]["name"]: item["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
        for item in select_kinds(objects, "Deployment", "StatefulSet")
    }


@pytest.mark.parametrize(
    ("value", "restarted"),
    [
        ("settings.SCHEDULERLOG_API_CACHE_SIZE=64Mi", {"api"}),
        ("settings.SCHEDULERLOG_INDEX_LINGER=1s", {"index"}),
        ("settings.SCHEDULERLOG_SUMMARY_CACHE_SIZE=32Mi", {"worker"}),
        ("opensearch.url=https://another:9200", {"index", "placements", "api"}),
        (
            "clusterName=another",
            {"api", "events", "hami-log", "kai-log", "kube-events", "raw-logs", "scheduler", "worker"},
        ),
        ("prometheus.enabled=true", set()),
    ],
)
def test_a_changed_value_starts_the_processes_again_that_use_it(helm: Helm, value: str, restarted: set[str]) -> None:
    before, after = sum_settings(helm), sum_settings(helm, value)
    changed = {name.removeprefix("schedulerlog-") for name in before if before[name] != after[name]}
    assert changed == restarted


def test_the_name_of_a_job_changes_with_its_content(helm: Helm) -> None:
    def list_jobs(*values: str) -> set[str]:
        return {item["metadata"]["name"] for item in select_kinds(helm.render(*to_flags("observe", *values)), "Job")}

    before = list_jobs()
    assert len(before) == 2
    assert list_jobs("image.tag=0.2.0").isdisjoint(before)
    # provision makes topics with these partitions; the certificate has nothing to do with them.
    assert len(list_jobs("kafka.partitions=24") & before) == 1


@pytest.mark.parametrize("example", [*EXAMPLES, ""])
def test_lint_finds_nothing(helm: Helm, example: str) -> None:
    flags = to_flags(example) if example else ("--set", IMAGE)
    done = helm.run("lint", "--strict", str(CHART), *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize(
    ("values", "named", "why"),
    [
        (["image.repository="], "image.repository", "none is published"),
        (["kafka.securityProtocol=tls"], "/kafka/securityProtocol", "value must be one of"),
        (["kafka.bootstrapServer=kafka:9092"], "/kafka", "'bootstrapServer' not allowed"),
        (["size=huge"], "/size", "value must be one of 'small', 'medium', 'large'"),
        (["resources.workers.limits.memory=1Gi"], "/resources", "'workers'"),
        (["resources.worker.limits.memory=1gb"], "/resources/worker/limits/memory", "does not match pattern"),
        (["settings.SCHEDULERLOG_INDEX_LINGR=1s"], "/settings", "SCHEDULERLOG_INDEX_LINGR"),
        (["settings.SCHEDULERLOG_KAFKA_PASSWORD=secret"], "/settings", "SCHEDULERLOG_KAFKA_PASSWORD"),
        (["image.digest=sha256:12"], "/image/digest", "does not match pattern"),
        (["stores.enabled=false"], "kafka.bootstrapServers", "name your Kafka"),
        (["stores.enabled=false", "kafka.bootstrapServers=k:1"], "opensearch.url", "name your OpenSearch"),
        (["kafka.bootstrapServers=kafka.kafka:9092"], "stores.enabled", "set stores.enabled=false"),
        (["kafka.bootstrapServers=kafka"], "/kafka/bootstrapServers", "does not match pattern"),
        (["highAvailability=true"], "highAvailability", "three nodes"),
        (["processes=sources"], "stores.enabled", "Kafka of a fleet"),
        (["replicas.api=2"], "processes", "set processes=separate"),
        (["api.ingress.enabled=true"], "api.ingress.host", "name the host"),
        (["api.service.nodePort=70000"], "/api/service/nodePort", "maximum"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_its_name(helm: Helm, values: list[str], named: str, why: str) -> None:
    refusal = helm.explain_refusal(*(word for value in [IMAGE, *values] for word in ("--set", value)))
    assert named in refusal
    assert why in refusal


def test_an_ingress_leads_to_the_port_of_the_api(helm: Helm) -> None:
    objects = helm.render(*to_flags("strimzi"))
    (ingress,) = select_kinds(objects, "Ingress")
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = path["backend"]["service"]
    (target,) = [item for item in select_kinds(objects, "Service") if item["metadata"]["name"] == service["name"]]
    assert service["port"]["name"] in {port["name"] for port in target["spec"]["ports"]}
    assert target["spec"]["type"] == "ClusterIP"


def test_rules_and_monitors_have_the_labels_of_a_prometheus(helm: Helm) -> None:
    objects = helm.render(*to_flags("strimzi"))
    watched = select_kinds(objects, "ServiceMonitor", "PrometheusRule")
    assert len(watched) == 3
    assert {item["metadata"]["labels"]["release"] for item in watched} == {"kube-prometheus-stack"}
    assert "{{ $value" in json.dumps(watched)


@pytest.mark.parametrize("page", ["", "https://runbooks.example.com/schedulerlog"])
def test_alerts_link_the_runbooks_of_the_reader_or_none(helm: Helm, page: str) -> None:
    objects = helm.render(*to_flags("strimzi", f"prometheus.runbooks={page}"))
    groups = [group for item in select_kinds(objects, "PrometheusRule") for group in item["spec"]["groups"]]
    alerts = {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}
    assert len(alerts) >= 18
    for name, alert in alerts.items():
        assert alert["annotations"].get("runbook_url") == (f"{page}#{name.lower()}" if page else None)
        assert alert["annotations"]["summary"]


def test_a_package_of_the_chart_renders_the_same(helm: Helm, tmp_path: Path) -> None:
    done = helm.run("package", str(CHART), "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("schedulerlog-*.tgz")
    flags = to_flags("strimzi", *ALL)
    packaged, unpacked = (helm.run_template(path, "schedulerlog", *flags) for path in (package, CHART))
    assert len(packaged.stdout) > 100_000
    assert packaged.stdout == unpacked.stdout
