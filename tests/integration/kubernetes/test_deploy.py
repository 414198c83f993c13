"""deploy/kustomize on a real API server that enforces Pod Security `restricted`: every overlay and every component."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from runtime.opensearch.roles import PROVISIONER, READER, WRITER
from schemas.json_types import Json
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
from tests.support.control_plane.objects import a_large_node, created_nodes
from tests.support.waiting import eventually

OPTIONAL = (
    "raw-logs", "alertmanager", "events", "high-availability", "tls", "cert-manager", "prometheus",
    "keda", "grafana", "dashboards", "event-reporters", "device-annotations", "mcp",
)  # fmt: skip
"""Components that go with every overlay."""
WITH_SCHEDULER = ("kube-events", "events", "scheduler", "networkpolicy")
"""Components of the overlay with our scheduler, without TLS."""
POLICIES = ("event-reporters", "device-annotations")
IMMUTABLE = re.compile(r'Error from server \(Invalid\): (\w+)\S* "([\w.-]+)" is invalid: .*: field is immutable')
TOKENS = {"serviceAccountToken"}
"""Sources of a projected volume that have the token of the pod's account."""


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with a node on which pods run, with the kinds of other projects, and empty at the end."""
    define_others_kinds(control_plane)
    apply(control_plane, select_kinds(build(control_plane, KUSTOMIZE / "base"), "Namespace", "ServiceAccount"))
    control_plane.start_scheduler({})
    with emptied(control_plane), created_nodes(control_plane, [a_large_node("deploy-node")]):
        yield control_plane


def read_pods(cluster: ControlPlane, labels: str = "app.kubernetes.io/part-of=schedulerlog") -> list[Json]:
    with cluster.open_client() as client:
        answer = client.get(f"/api/v1/namespaces/{NAMESPACE}/pods", params={"labelSelector": labels})
    items: list[Json] = answer.json()["items"]
    return items


def list_running_components(cluster: ControlPlane) -> set[str]:
    """List the components of which a pod runs, or has run to its end; one with a volume claim, for which there is no
    disk here, need only be created.
    """
    return {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for pod in read_pods(cluster)
        if pod["status"]["phase"] != "Pending"
        or any("persistentVolumeClaim" in volume for volume in pod["spec"]["volumes"])
    }


def explain_pod_refusal(cluster: ControlPlane, spec: Json) -> str:
    """Explain why a pod of this template would be refused; empty for one that the API server takes."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": spec}
    with cluster.open_client() as client:
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = client.post(f"/api/v1/namespaces/{NAMESPACE}/pods", json=pod, params=query)
    return "" if answer.is_success else str(answer.json()["message"])


def explain_object_refusal(cluster: ControlPlane, manifest: Json) -> str:
    """Explain why the API server does not take an object of another project's kind; empty for one that it takes."""
    path = f"/apis/{manifest['apiVersion']}/namespaces/{NAMESPACE}/{manifest['kind'].lower()}s"
    named = manifest | {"metadata": manifest["metadata"] | {"name": "tried"}}
    with cluster.open_client() as client:
        answer = client.post(path, json=named, params={"dryRun": "All", "fieldValidation": "Strict"})
    return "" if answer.is_success else str(answer.json()["message"])


def install(cluster: ControlPlane, folder: Path) -> list[Json]:
    objects = build(cluster, folder)
    # As docs/deploy.md has it: a Job can't be changed.
    with cluster.open_client() as client:
        for name in ("provision", "certificate", "mcp-certificate"):
            job = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/schedulerlog-{name}"
            client.delete(job, params={"propagationPolicy": "Background"})
        # The stores of two overlays have other volumes, and those of a StatefulSet can't be changed either.
        for name in ("kafka", "opensearch"):
            client.delete(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{name}")
    apply(cluster, objects)
    return objects


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_taken_and_its_pods_are_admitted_under_restricted(cluster: ControlPlane, overlay: str) -> None:
    templates = dict(list_pod_templates(install(cluster, KUSTOMIZE / "overlays" / overlay)))
    assert len(templates) >= {"spoke": 1, "small": 4, "hub": 7}.get(overlay, 8)
    assert {name: why for name, spec in templates.items() if (why := explain_pod_refusal(cluster, spec))} == {}


def test_all_components_together_are_taken_and_every_pod_runs(cluster: ControlPlane, tmp_path: Path) -> None:
    # The control plane of the tests is one for all, and they write events as its administrator.
    names = [name for name in OPTIONAL if name not in ("events", *POLICIES)]
    objects = install(cluster, combine(tmp_path / "all", KUSTOMIZE / "base", [*WITH_SCHEDULER, *names]))
    assert {
        name: why for name, spec in list_pod_templates(objects) if (why := explain_pod_refusal(cluster, spec))
    } == {}
    wanted = {
        "worker", "index", "placements", "alerts", "api", "provision", "raw-logs", "alertmanager", "events",
        "kube-events", "scheduler", "mcp",
    }  # fmt: skip
    eventually(
        lambda: list_running_components(cluster) >= wanted, lambda: f"{wanted - list_running_components(cluster)}"
    )


def test_the_same_render_changes_nothing_and_another_image_remakes_only_jobs(cluster: ControlPlane) -> None:
    """Flux and Argo CD apply a render again and again, and make a Job again where its annotations say so."""
    objects = install(cluster, KUSTOMIZE / "overlays" / "production-scheduler")
    versions = read_versions(cluster, objects)
    assert len(versions) == len(objects)
    for _ in range(2):
        apply(cluster, objects)
        assert read_versions(cluster, objects) == versions
    text = json.dumps(objects).replace("/schedulerlog:0.1.0", "/schedulerlog:0.2.0")
    jobs = {("Job", "schedulerlog-provision"), ("Job", "schedulerlog-certificate")}
    changed = json.loads(text)
    assert list_refused(cluster, changed) == jobs
    for item in changed:
        if (item["kind"], item["metadata"]["name"]) in jobs:
            assert item["metadata"]["annotations"] == {
                "kustomize.toolkit.fluxcd.io/force": "enabled",
                "argocd.argoproj.io/sync-options": "Force=true,Replace=true",
            }


def test_the_label_of_a_prometheus_is_added_as_the_page_says(cluster: ControlPlane, tmp_path: Path) -> None:
    page = (KUSTOMIZE.parents[1] / "docs/deploy.md").read_text()
    (block,) = (
        block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "/metadata/labels/release" in block
    )
    folder = combine(tmp_path / "labelled", KUSTOMIZE / "base", ["prometheus"])
    path = folder / "kustomization.yaml"
    path.write_text(path.read_text() + block)
    labelled = select_kinds(build(cluster, folder), "ServiceMonitor", "PrometheusRule")
    assert len(labelled) >= 2
    assert {item["metadata"]["labels"]["release"] for item in labelled} == {"kube-prometheus-stack"}


def read_versions(cluster: ControlPlane, objects: list[Json]) -> dict[tuple[str, str], str]:
    """Read the generation of each object, which its status does not move; its version where it has none."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    items = json.loads(cluster.run_kubectl("get", "-o", "json", "-f", "-", stdin=text))["items"]
    metadata = {(item["kind"], item["metadata"]["name"]): item["metadata"] for item in items}
    return {key: f"{value.get('generation') or value['resourceVersion']}" for key, value in metadata.items()}


def list_refused(cluster: ControlPlane, objects: list[Json]) -> set[tuple[str, str]]:
    """List kind and name of the objects that may not be changed to these."""
    with pytest.raises(subprocess.CalledProcessError) as failure:
        apply(cluster, objects, "--dry-run=server")
    # kubectl continues with the next object, and writes a line for each that is refused.
    lines = str(failure.value.stderr).strip().splitlines()
    refusals = [IMMUTABLE.fullmatch(line) for line in lines]
    assert None not in refusals, failure.value.stderr
    return {(match[1], match[2]) for match in refusals if match}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_overlay_of_a_checkout_takes_its_image_from_the_registry(
    cluster: ControlPlane, overlay: str, tmp_path: Path
) -> None:
    folder, registry = tmp_path / "overlay", "registry.example.com/gpu"
    write = [str(KUSTOMIZE.parents[1] / ".ci/overlay"), registry, overlay, str(folder)]
    output = subprocess.run(write, check=True, capture_output=True, text=True).stdout
    assert output == f"kubectl apply --server-side -k {folder}\n"
    objects = build(cluster, folder)
    images = {container["image"] for _, spec in list_pod_templates(objects) for container in spec["containers"]}
    assert {image for image in images if "schedulerlog" in image} == {f"{registry}/schedulerlog:0.1.0"}
    accounts = select_kinds(objects, "ServiceAccount")
    assert accounts
    assert all(account["imagePullSecrets"] == [{"name": "schedulerlog-pull"}] for account in accounts)
    again = subprocess.run(write, check=False, capture_output=True, text=True)
    assert (again.returncode, "is there already" in again.stderr) == (1, True)


def test_the_overlay_of_a_checkout_names_its_image_by_the_digest_of_a_push(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    digest, folder = f"sha256:{'ae79e909' * 8}", tmp_path / "overlay"
    write = [str(KUSTOMIZE.parents[1] / ".ci/overlay"), "registry.example.com/gpu", "observe", str(folder)]
    refused = subprocess.run([*write, "0.1.0"], check=False, capture_output=True, text=True)
    assert (refused.returncode, "DIGEST is sha256:" in refused.stderr, folder.exists()) == (2, True, False)
    subprocess.run([*write, digest], check=True, capture_output=True)
    templates = list_pod_templates(build(cluster, folder))
    images = {container["image"] for _, spec in templates for container in spec["containers"]}
    assert images == {f"registry.example.com/gpu/schedulerlog@{digest}"}


@pytest.mark.parametrize("component", [*OPTIONAL, "networkpolicy", "opensearch", "ism", "strimzi", "aggregated-api"])
def test_each_component_alone_can_be_added(cluster: ControlPlane, component: str, tmp_path: Path) -> None:
    alone = build(cluster, combine(tmp_path / "one", KUSTOMIZE / "base", [component]))
    assert alone != build(cluster, KUSTOMIZE / "base")
    apply(cluster, [item for item in alone if item["kind"] != "Job"], "--dry-run=server", "--force-conflicts")


@pytest.mark.parametrize(
    ("component", "kind", "field", "wrong", "why"),
    [
        ("strimzi", "KafkaTopic", "partition", 12, 'unknown field "spec.partition"'),
        ("strimzi", "KafkaUser", "authentication", {"type": "kerberos"}, "spec.authentication.type: Unsupported value"),
        ("keda", "ScaledObject", "maxReplicaCount", "12", 'spec.maxReplicaCount: Invalid value: "string"'),
        (
            "keda-tls/kafka-scram",
            "TriggerAuthentication",
            "secretTargetRef",
            [{"parameter": "ca", "key": "ca.crt"}],
            "spec.secretTargetRef[0].name: Required value",
        ),
        (
            "prometheus",
            "ServiceMonitor",
            "endpoints",
            [{"ports": "metrics"}],
            'unknown field "spec.endpoints[0].ports"',
        ),
        ("prometheus", "PrometheusRule", "groups", [{"rules": []}], "spec.groups[0].name: Required value"),
        ("cert-manager", "Certificate", "usages", ["serving"], "spec.usages[0]: Unsupported value"),
        ("cert-manager", "Issuer", "ca", {}, "spec.ca.secretName: Required value"),
    ],
)
def test_the_definitions_of_other_projects_refuse_what_they_do_not_know(
    cluster: ControlPlane, component: str, kind: str, field: str, wrong: object, why: str, tmp_path: Path
) -> None:
    ours = build(cluster, combine(tmp_path / "one", KUSTOMIZE / "base", [component]))
    [manifest, *_] = select_kinds(ours, kind)
    assert explain_object_refusal(cluster, manifest) == ""
    assert why in explain_object_refusal(cluster, manifest | {"spec": manifest["spec"] | {field: wrong}})


def read_example_of_operator() -> list[Json]:
    """Read the objects for the operator of OpenSearch from docs/composition.md, without their namespace."""
    page = (KUSTOMIZE.parents[1] / "docs/composition.md").read_text()
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "OpenSearchCluster" in block)
    objects = list(yaml.load_all(block, yaml.CSafeLoader))
    for item in objects:
        assert item["metadata"].pop("namespace") == "opensearch"
    return objects


def test_the_operator_of_opensearch_takes_the_cluster_and_the_users_of_the_page(
    cluster: ControlPlane,
) -> None:
    store, *users = read_example_of_operator()
    assert {item["kind"]: explain_object_refusal(cluster, item) for item in (store, *users)} == {
        "OpenSearchCluster": "", "OpensearchUser": "",
    }  # fmt: skip
    general = store["spec"]["general"]
    unknown = store | {"spec": store["spec"] | {"general": general | {"service": "opensearch"}}}
    assert 'unknown field "spec.general.service"' in explain_object_refusal(cluster, unknown)
    del users[0]["spec"]["passwordFrom"]["key"]
    assert "spec.passwordFrom.key: Required value" in explain_object_refusal(cluster, users[0])


def test_the_users_of_the_operator_of_opensearch_are_those_of_the_component(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    store, *users = read_example_of_operator()
    by_name = {user["metadata"]["name"]: user["spec"]["passwordFrom"] for user in users}
    assert by_name.keys() == {WRITER, READER, PROVISIONER}
    objects = build(cluster, combine(tmp_path / "opensearch", KUSTOMIZE / "base", ["opensearch"]))
    secrets = {name for _, spec in list_pod_templates(objects) for name in list_secrets(spec, "password")}
    administrator = store["spec"]["security"]["config"]["adminCredentialsSecret"]["name"]
    named = {(source["name"], source["key"]) for source in by_name.values()} | {(administrator, "password")}
    assert {(name, "password") for name in secrets} == named


def list_secrets(spec: Json, key: str) -> set[str]:
    """List the Secrets of which a pod mounts this key for OpenSearch."""
    volumes = [volume for volume in spec["volumes"] if volume["name"] == "opensearch"]
    sources = [source["secret"] for volume in volumes for source in volume["projected"]["sources"]]
    return {source["name"] for source in sources for item in source.get("items", ()) if item["key"] == key}


def test_with_strimzi_each_process_has_the_certificate_of_its_own_user(cluster: ControlPlane, tmp_path: Path) -> None:
    sources = ["raw-logs", "alertmanager", "hami-log", "kai-log", "high-availability", "strimzi"]
    objects = build(cluster, combine(tmp_path / "strimzi", KUSTOMIZE / "base", [*WITH_SCHEDULER, *sources]))
    mounted = {
        name.rpartition("/")[2]: [source["secret"]["name"] for source in volume["projected"]["sources"]]
        for name, spec in list_pod_templates(objects)
        for volume in spec["volumes"]
        if volume["name"] == "kafka"
    }
    users = [item["metadata"]["name"] for item in select_kinds(objects, "KafkaUser")]
    # Of the Secret for all there is none where Strimzi makes those of the users.
    assert mounted == {
        **{user: ["schedulerlog-kafka", "kafka-cluster-ca-cert", user] for user in users},
        "schedulerlog-provision": ["schedulerlog-kafka"],
    }
    provision = next(spec for name, spec in list_pod_templates(objects) if name.endswith("-provision"))
    assert provision["containers"][0]["args"] == ["pipeline", "provision-templates"]


def test_with_roles_of_opensearch_each_process_has_the_user_of_its_role(cluster: ControlPlane, tmp_path: Path) -> None:
    objects = build(cluster, combine(tmp_path / "opensearch", KUSTOMIZE / "base", ["kube-events", "opensearch", "ism"]))
    # A Job that is there can't be changed.
    there = ("schedulerlog-provision", "schedulerlog-certificate")
    others = [item for item in objects if item["kind"] != "Job" or item["metadata"]["name"] not in there]
    apply(cluster, others, "--dry-run=server", "--force-conflicts")
    (settings,) = [item["data"] for item in select_kinds(objects, "ConfigMap") if "OPENSEARCH_READER" in item["data"]]
    users, secrets = {}, {}
    for _, spec in list_pod_templates(objects):
        variables = {variable["name"]: variable.get("valueFrom") for variable in spec["containers"][0].get("env", [])}
        name = spec["serviceAccountName"].removeprefix("schedulerlog-")
        if source := variables.get("SCHEDULERLOG_OPENSEARCH_USERNAME"):
            users[name] = settings[source["configMapKeyRef"]["key"]] if "configMapKeyRef" in source else None
            (volume,) = (volume for volume in spec["volumes"] if volume["name"] == "opensearch")
            secrets[name] = [source["secret"]["name"] for source in volume["projected"]["sources"]]
    administrators = [users.pop(name) for name in ("roles", "policies")]  # of a Secret
    assert users == {
        "index": WRITER, "placements": WRITER, "api": READER, "provision": PROVISIONER, "retention": PROVISIONER
    }  # fmt: skip
    suffix = {name: f"schedulerlog-opensearch-{user.removeprefix('schedulerlog-')}" for name, user in users.items()}
    of_jobs = dict.fromkeys(("roles", "policies"), "schedulerlog-opensearch-administrator")
    assert secrets == {name: ["schedulerlog-opensearch", secret] for name, secret in (suffix | of_jobs).items()}
    assert administrators == [None, None]
    [retention] = [spec for name, spec in list_pod_templates(objects) if name.endswith("-retention")]
    assert retention["containers"][0]["args"] == ["pipeline", "retention", "--beside-policies"]


def test_a_pod_with_one_restriction_less_is_refused(cluster: ControlPlane) -> None:
    (spec,) = [
        spec for name, spec in list_pod_templates(build(cluster, KUSTOMIZE / "base")) if name.endswith("-worker")
    ]
    assert not explain_pod_refusal(cluster, spec)
    del spec["securityContext"]["seccompProfile"]
    assert 'violates PodSecurity "restricted:latest"' in explain_pod_refusal(cluster, spec)


def test_every_pod_keeps_the_rules_that_restricted_does_not_ask_for(cluster: ControlPlane, tmp_path: Path) -> None:
    names = [name for name in OPTIONAL if name != "events"]
    for name, spec in list_pod_templates(
        build(cluster, combine(tmp_path / "all", KUSTOMIZE / "base", [*WITH_SCHEDULER, *names]))
    ):
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsUser"] == 10001, name
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"], name
            assert container["resources"]["requests"].keys() == {"cpu", "memory", "ephemeral-storage"}, name
            assert "memory" in container["resources"]["limits"], name


def list_accounts_with_token(spec: Json, secrets: dict[str, str]) -> set[str]:
    """List the accounts of which a pod gets a token; ``secrets``: Secret to the account of its token."""
    volumes = [volume for volume in spec["volumes"] if TOKENS.intersection(_iterate_sources(volume))]
    pod_accounts = {spec["serviceAccountName"]} if spec["automountServiceAccountToken"] or volumes else set()
    named = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    return pod_accounts | {account for secret, account in secrets.items() if secret in named}


def _iterate_sources(volume: Json) -> Iterator[str]:
    return (kind for source in volume.get("projected", {}).get("sources", ()) for kind in source)


def test_the_extender_has_no_token_of_kube_scheduler(cluster: ControlPlane) -> None:
    """An attacker in the process that listens has the rights of its own account only."""
    objects = build(cluster, KUSTOMIZE / "overlays/scheduler")
    (spec,) = [spec for name, spec in list_pod_templates(objects) if name == "StatefulSet/schedulerlog-scheduler"]
    mounted = {
        container["name"]: {mount["name"] for mount in container["volumeMounts"]} for container in spec["containers"]
    }
    tokens = {"scheduler-token", "kube-scheduler-token"}
    assert mounted["scheduler"] & tokens == {"scheduler-token"}
    assert mounted["kube-scheduler"] & tokens == {"kube-scheduler-token"}
    assert spec["automountServiceAccountToken"] is False
    bound = {
        item["roleRef"]["name"]
        for item in select_kinds(objects, "ClusterRoleBinding", "RoleBinding")
        if any(subject["name"] == "schedulerlog-scheduler" for subject in item["subjects"])
    }
    assert bound == {"schedulerlog-scheduler"}


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay not in ("demo", "small")])
def test_n9_every_overlay_without_stores_of_its_own_has_network_policies_and_tls(
    cluster: ControlPlane, overlay: str
) -> None:
    objects = build(cluster, KUSTOMIZE / "overlays" / overlay)
    policies = {
        item["metadata"]["name"].removeprefix("schedulerlog-"): item["spec"]
        for item in select_kinds(objects, "NetworkPolicy")
    }
    assert policies["default"]["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & policies["default"].keys()
    # The API server is in no namespace; everything else that a pod reaches has a place.
    open_ways = {name for name, policy in policies.items() for way in policy.get("egress", ()) if "to" not in way}
    assert open_ways <= {"api-server", "alertmanager"}
    maps = [item["data"] for item in select_kinds(objects, "ConfigMap")]
    (settings,) = (data for data in maps if "SCHEDULERLOG_CLUSTER_NAME" in data)
    assert settings["SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL"] == "ssl"
    assert settings["SCHEDULERLOG_OPENSEARCH_URL"].startswith("https://")
    files = {f"SCHEDULERLOG_{name}" for name in ("KAFKA_CA_FILE", "OPENSEARCH_CA_FILE", "API_CERT_FILE")}
    assert files <= settings.keys()
    # Each process that has the settings has the files that they name.
    mounts = {
        name: {mount["mountPath"] for mount in spec["containers"][0].get("volumeMounts", ())}
        for name, spec in list_pod_templates(objects)
    }
    for store in ("kafka", "opensearch"):
        using = policies[store]["podSelector"]["matchExpressions"][0]["values"]
        without = {
            name
            for name, paths in mounts.items()
            if name.rpartition("schedulerlog-")[2] in using and f"/etc/schedulerlog/{store}" not in paths
        }
        assert without == set(), store
    others = [item for item in objects if item["kind"] != "Job"]
    apply(cluster, others, "--dry-run=server", "--force-conflicts")


def test_only_processes_with_rights_get_a_token(cluster: ControlPlane, tmp_path: Path) -> None:
    everything = combine(
        tmp_path / "all", KUSTOMIZE / "base", [*WITH_SCHEDULER, "raw-logs", "alertmanager", "hami-log", "mcp"]
    )
    objects = build(cluster, everything)
    bindings = select_kinds(objects, "ClusterRoleBinding", "RoleBinding")
    bound = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    secrets = {
        item["metadata"]["name"]: item["metadata"]["annotations"]["kubernetes.io/service-account.name"]
        for item in select_kinds(objects, "Secret")
        if item["type"] == "kubernetes.io/service-account-token"
    }
    accounts = {
        account for _, spec in list_pod_templates(objects) for account in list_accounts_with_token(spec, secrets)
    }
    assert accounts == bound
    # Also of a pod that somebody else starts under the account.
    assert all(item["automountServiceAccountToken"] is False for item in select_kinds(objects, "ServiceAccount"))


def test_a_changed_setting_starts_all_processes_again(cluster: ControlPlane, tmp_path: Path) -> None:
    def list_settings(folder: Path) -> dict[str, str]:
        return {
            name: spec["containers"][0]["envFrom"][0]["configMapRef"]["name"]
            for name, spec in list_pod_templates(build(cluster, folder))
        }

    before = list_settings(KUSTOMIZE / "overlays/observe")
    after = list_settings(KUSTOMIZE / "overlays/production")
    assert before.keys() == after.keys()
    assert len(set(before.values())) == len(set(after.values())) == 1
    assert set(before.values()) != set(after.values())
