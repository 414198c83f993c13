"""docs/access.md on a real API server: its patches over the components, with the Gateway API's own definitions."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dev.embedded.control_plane import ControlPlane
from runtime.settings.variables import read_variable_names
from schemas.json_types import Json
from tests.support.control_plane.deployed import (
    KUSTOMIZE,
    NAMESPACE,
    apply,
    build,
    combine,
    define_others_kinds,
    emptied,
    list_pod_templates,
    select_kinds,
)

PAGE = (KUSTOMIZE.parents[1] / "docs/access.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    define_others_kinds(control_plane)
    with emptied(control_plane):
        apply(control_plane, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        yield control_plane


def build_with_block(cluster: ControlPlane, folder: Path, names: list[str], words: str) -> list[Json]:
    """Build the base with components and the patches of the page's block that has these words."""
    (block,) = (block for block in BLOCKS if words in block)
    path = combine(folder, KUSTOMIZE / "base", names) / "kustomization.yaml"
    patches = yaml.safe_load(block)["patches"]
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"patches": patches}))
    return build(cluster, folder)


def test_the_patches_of_the_page_are_taken(cluster: ControlPlane, tmp_path: Path) -> None:
    ingress = build_with_block(cluster, tmp_path / "ingress", ["ingress"], "ingressClassName")
    gateway = build_with_block(cluster, tmp_path / "gateway", ["gateway"], "parentRefs")
    names = ["ingress", "authenticating-proxy"]
    login = build_with_block(cluster, tmp_path / "login", names, "auth-response-headers")
    (spec,) = [item["spec"] for item in select_kinds(ingress, "Ingress")]
    assert (spec["rules"][0]["host"], spec["tls"][0]["hosts"]) == ("gpu.example.com", ["gpu.example.com"])
    (route,) = [item["spec"] for item in select_kinds(gateway, "HTTPRoute")]
    assert route["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
    for objects in (ingress, gateway, login):
        others = [item for item in objects if item["kind"] not in {"Job", "CronJob"}]
        apply(cluster, others, "--dry-run=server", "--force-conflicts")


def test_the_definitions_of_the_gateway_api_refuse_what_they_do_not_know(cluster: ControlPlane, tmp_path: Path) -> None:
    objects = build(cluster, combine(tmp_path / "gateway", KUSTOMIZE / "base", ["gateway"]))
    (policy,) = select_kinds(objects, "BackendTLSPolicy")
    path = f"/apis/{policy['apiVersion']}/namespaces/{NAMESPACE}/backendtlspolicies"
    without_authority = policy | {"spec": policy["spec"] | {"validation": {"hostname": "schedulerlog-api"}}}
    with cluster.open_client() as client:
        answers = [client.post(path, json=item, params={"dryRun": "All"}) for item in (policy, without_authority)]
    assert [answer.status_code for answer in answers] == [201, 422]
    assert "must specify either CACertificateRefs or WellKnownCACertificates" in answers[1].json()["message"]


def test_the_component_believes_the_headers_that_the_page_has_its_proxy_send(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    objects = build(cluster, combine(tmp_path / "login", KUSTOMIZE / "base", ["authenticating-proxy"]))
    data = [item["data"] for item in select_kinds(objects, "ConfigMap")]
    (settings,) = (values for values in data if "SCHEDULERLOG_API_PROXY_CA_FILE" in values)
    named = {name: value for name, value in settings.items() if "_API_PROXY_" in name}
    assert named.keys() <= read_variable_names()
    rows = dict(re.findall(r"^   \| `(SCHEDULERLOG_API_PROXY_\w+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert rows == named
    headers = {settings[f"SCHEDULERLOG_API_PROXY_{kind}_HEADER"] for kind in ("USER", "GROUPS")}
    (nginx,) = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
    assert headers <= set(re.findall(r"proxy_set_header (\S+)", nginx))
    (annotation,) = re.findall(r"auth-response-headers: (\S+)", PAGE)
    assert headers == set(annotation.split(","))
    (api,) = (spec for name, spec in list_pod_templates(objects) if name == "Deployment/schedulerlog-api")
    folders = {mount["name"]: mount["mountPath"] for mount in api["containers"][0]["volumeMounts"]}
    assert settings["SCHEDULERLOG_API_PROXY_CA_FILE"] == f"{folders['proxy-ca']}/ca.crt"
    (volume,) = (volume for volume in api["volumes"] if volume["name"] == "proxy-ca")
    assert volume["secret"]["secretName"] == "schedulerlog-proxy-ca"
    assert f"secret generic {volume['secret']['secretName']} " in PAGE
