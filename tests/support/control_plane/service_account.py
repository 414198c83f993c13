"""Service accounts of tests: a token and the rights that it has, no more."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.objects import create

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@contextlib.contextmanager
def service_account(cluster: ControlPlane, namespace: str, rules: Sequence[Json], folder: Path) -> Iterator[str]:
    """The name of an account that is allowed what ``rules`` say everywhere.

    ``folder`` gets what a pod finds at /var/run/secrets/kubernetes.io/serviceaccount.
    """
    name = f"account-{uuid.uuid4().hex[:8]}"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    with cluster.open_client() as client:
        create(client, accounts, {"metadata": {"name": name}})
    with granted(cluster, namespace, name, rules):
        write_token(cluster, namespace, name, folder)
        yield name


@contextlib.contextmanager
def granted(cluster: ControlPlane, namespace: str, account: str, rules: Sequence[Json]) -> Iterator[None]:
    """The account is allowed what ``rules`` say, everywhere, besides what it is allowed already."""
    name = f"{account}-{uuid.uuid4().hex[:8]}"
    with cluster.open_client() as client:
        create(client, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
        create(client, f"{RBAC}/clusterrolebindings", binding)
        try:
            yield
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                client.delete(f"{RBAC}/{kind}/{name}")


def write_token(cluster: ControlPlane, namespace: str, name: str, folder: Path) -> None:
    """Write what a pod of this account has at /var/run/secrets/kubernetes.io/serviceaccount."""
    with cluster.open_client() as client:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = create(client, path, {"spec": {}})["status"]["token"]
    folder.mkdir(exist_ok=True)
    for file, text in {"token": token, "ca.crt": cluster.ca.read_text(), "namespace": namespace}.items():
        (folder / file).write_text(text)


def a_kubeconfig(folder: Path, cluster: ControlPlane, server: str = "") -> Path:
    """A kubeconfig of the account whose token lies in ``folder``; ``server`` is a proxy before the API server."""
    cluster_entry = {"server": server or cluster.url, "certificate-authority": str(cluster.ca)}
    document = {
        "clusters": [{"name": "c", "cluster": cluster_entry}],
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
