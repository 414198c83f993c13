"""Components with a ValidatingAdmissionPolicy, in force in one namespace."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx

from dev.embedded.control_plane import ControlPlane
from tests.support.control_plane.deployed import KUSTOMIZE, apply, built, combined

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/schedulerlog-"


@contextlib.contextmanager
def policy_in(cluster: ControlPlane, component: str, namespace: str, folder: Path) -> Iterator[None]:
    """The component's policy, in this namespace alone: other tests write beside, as the cluster's administrator."""
    objects = built(cluster, combined(folder / "policy", KUSTOMIZE / "base", [component]))
    found = [item for item in objects if item["kind"].startswith("ValidatingAdmissionPolicy")]
    [binding] = [item for item in found if item["kind"].endswith("Binding")]
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding["spec"]["matchResources"] = {"namespaceSelector": here}
    apply(cluster, found)
    try:
        yield
    finally:
        with cluster.client() as client:
            for path in (_POLICIES.replace("policies/", "policybindings/"), _POLICIES):
                client.delete(path + component)


def account_client(cluster: ControlPlane, folder: Path) -> httpx.Client:
    """A client of the service account whose token lies in ``folder``."""
    token = (folder / "token").read_text()
    trusted, headers = ssl.create_default_context(cafile=cluster.ca), {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=cluster.url, verify=trusted, headers=headers)
