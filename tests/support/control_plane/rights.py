"""Rights of a service account, and which of them it has used, by the API server's audit log."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json

ANY_NAME = ""


class Right(NamedTuple):
    """``namespace`` is empty for the whole cluster, ``name`` for objects of every name."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ANY_NAME


class Request(NamedTuple):
    """Request of a service account."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    status: int
    agent: str

    def uses(self, right: Right) -> bool:
        return (
            (self.verb, self.group, self.resource) == right[:3]
            and right.namespace in ("", self.namespace)
            and right.name in (ANY_NAME, self.name)
        )


def list_granted(objects: Iterable[Json], account: str) -> Iterator[Right]:
    """List the rights of the account by the roles among ``objects``, without those of Kubernetes itself."""
    items = list(objects)
    roles = {
        (role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]): role["rules"]
        for role in items
        if role["kind"] in ("Role", "ClusterRole")
    }
    for binding in items:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding") and any(
            subject["name"] == account for subject in binding["subjects"]
        ):
            namespace, reference = binding["metadata"].get("namespace", ""), binding["roleRef"]
            owner = namespace if reference["kind"] == "Role" else ""
            for rule in roles.get((reference["kind"], owner, reference["name"]), ()):
                yield from _list_rights(rule, namespace)


def _list_rights(rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [ANY_NAME]):
                    yield Right(verb, group, resource, namespace, name)


def read_requests(cluster: ControlPlane, namespace: str, account: str) -> list[Request]:
    """Read all requests for objects, in order."""
    user = f"system:serviceaccount:{namespace}:{account}"
    lines = cluster.api_server.audit_log.read_text().splitlines()
    entries = (json.loads(line) for line in lines if user in line)
    return [_request(entry) for entry in entries if entry["user"]["username"] == user and "objectRef" in entry]


def _request(entry: Json) -> Request:
    reference = entry["objectRef"]
    resource = "/".join(filter(None, (reference.get("resource", ""), reference.get("subresource", ""))))
    return Request(
        entry["verb"],
        reference.get("apiGroup", ""),
        resource,
        reference.get("namespace", ""),
        reference.get("name", ""),
        entry.get("responseStatus", {}).get("code", 0),
        entry.get("userAgent", ""),
    )
