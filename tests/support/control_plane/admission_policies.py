"""Components with a ValidatingAdmissionPolicy, in force in one namespace."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx

from dev.embedded.control_plane import ControlPlane
from tests.support.control_plane.deployed import KUSTOMIZE, apply, build, combine

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/schedulerlog-"


@contextlib.contextmanager
def policy_in(cluster: ControlPlane, component: str, namespace: str, folder: Path) -> Iterator[None]:
    """The component's policy, in this namespace alone: other tests write beside, as the cluster's administrator."""
    objects = build(cluster, combine(folder / "policy", KUSTOMIZE / "base", [component]))
    policies = [item for item in objects if item["kind"].startswith("ValidatingAdmissionPolicy")]
    [binding] = [item for item in policies if item["kind"].endswith("Binding")]
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding["spec"]["matchResources"] = {"namespaceSelector": here}
    apply(cluster, policies)
    try:
        yield
    finally:
        with cluster.open_client() as client:
            for path in (_POLICIES.replace("policies/", "policybindings/"), _POLICIES):
                client.delete(path + component)


def connect_account(cluster: ControlPlane, folder: Path) -> httpx.Client:
    """Connect a client as the service account whose token lies in ``folder``."""
    token = (folder / "token").read_text()
    trusted, headers = ssl.create_default_context(cafile=cluster.ca), {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=cluster.url, verify=trusted, headers=headers, timeout=30)
