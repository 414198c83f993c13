"""Callers of the API: service accounts with tokens for it, and the Roles that they have."""

import itertools
from collections.abc import Sequence

import httpx

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.objects import create
from tests.support.control_plane.service_account import RBAC

AUDIENCE = "schedulerlog"


def build_rule(resource: str, *verbs: str, names: Sequence[str] = (), group: str = "schedulerlog.io") -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), "resourceNames": list(names)}


def build_path_rule(path: str) -> Json:
    return {"nonResourceURLs": [path], "verbs": ["get"]}


class Callers:
    """Makes service accounts in ``namespace``. What belongs to no namespace goes with ``remove``."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._everywhere: list[str] = []
        self._numbers = itertools.count()

    def create_account(self, name: str) -> None:
        with self._cluster.open_client() as client:
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts"
            create(client, path, {"metadata": {"name": name}})

    def build_header(self, name: str, audience: str = AUDIENCE) -> dict[str, str]:
        """Build the header with a new token of the account."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}/token"
        with self._cluster.open_client() as client:
            token = create(client, path, {"spec": {"audiences": [audience]}})["status"]["token"]
        return {"Authorization": f"Bearer {token}"}

    def build_header_of_pod(self, name: str, pod: str) -> dict[str, str]:
        """Build the header with a token that ends with a new pod, as a kubelet asks for one."""
        with self._cluster.open_client() as client:
            # On no node, so that it is gone as soon as it is deleted.
            spec = {
                "serviceAccountName": name,
                "schedulerName": "nobody",
                "containers": [{"name": "main", "image": "none"}],
            }
            pods = f"/api/v1/namespaces/{self._namespace}/pods"
            uid = create(client, pods, {"metadata": {"name": pod}, "spec": spec})["metadata"]["uid"]
            bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": uid}
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}/token"
            token_request = {"spec": {"audiences": [AUDIENCE], "boundObjectRef": bound}}
            token = create(client, path, token_request)["status"]["token"]
        return {"Authorization": f"Bearer {token}"}

    def grant(self, name: str, *rules: Json, namespace: str = "") -> str:
        """Allow the account what the rules say, in the namespace or everywhere; the path of the binding."""
        kind = "Role" if namespace else "ClusterRole"
        scope = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        role = f"{self._namespace}-{name}-{next(self._numbers)}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self._namespace}
        binding = {"metadata": {"name": role}, "subjects": [subject]}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        with self._cluster.open_client() as client:
            create(client, f"{scope}/{kind.lower()}s", {"metadata": {"name": role}, "rules": list(rules)})
            create(client, f"{scope}/{kind.lower()}bindings", binding | {"roleRef": reference})
        paths = [f"{scope}/{kind.lower()}{what}/{role}" for what in ("bindings", "s")]
        if not namespace:
            self._everywhere += paths
        return paths[0]

    def bind(self, name: str, cluster_role: str, namespace: str = "") -> None:
        """Give the account a ClusterRole that there is, in the namespace or everywhere."""
        scope = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        binding = f"{self._namespace}-{name}-{next(self._numbers)}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self._namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role}
        with self._cluster.open_client() as client:
            create(client, scope, {"metadata": {"name": binding}, "subjects": [subject], "roleRef": reference})
        if not namespace:
            self._everywhere.append(f"{scope}/{binding}")

    def delete(self, path: str) -> None:
        with self._cluster.open_client() as client:
            client.delete(path).raise_for_status()

    def delete_account(self, name: str) -> None:
        self.delete(f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}")

    def delete_pod(self, name: str) -> None:
        self.delete(f"/api/v1/namespaces/{self._namespace}/pods/{name}")

    def remove(self) -> None:
        with self._cluster.open_client() as client:
            for path in self._everywhere:
                assert client.delete(path).status_code in (httpx.codes.OK, httpx.codes.NOT_FOUND)
