"""Which rights a service account has, and which of them it has used, by the API server's audit log."""

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
    """What a service account has asked for."""

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


def granted(objects: Iterable[Json], account: str) -> Iterator[Right]:
    """By the roles among ``objects`` that are bound to the account; those of Kubernetes itself are not among them."""
    found = list(objects)
    roles = {
        (role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]): role["rules"]
        for role in found
        if role["kind"] in ("Role", "ClusterRole")
    }
    for binding in found:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding") and any(
            subject["name"] == account for subject in binding["subjects"]
        ):
            namespace, reference = binding["metadata"].get("namespace", ""), binding["roleRef"]
            owner = namespace if reference["kind"] == "Role" else ""
            for rule in roles.get((reference["kind"], owner, reference["name"]), ()):
                yield from _rights(rule, namespace)


def _rights(rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [ANY_NAME]):
                    yield Right(verb, group, resource, namespace, name)


def requests_of(cluster: ControlPlane, namespace: str, account: str) -> list[Request]:
    """All requests for objects, in order."""
    user = f"system:serviceaccount:{namespace}:{account}"
    lines = cluster.api_server.audit_log.read_text().splitlines()
    entries = (json.loads(line) for line in lines if user in line)
    return [_request(entry) for entry in entries if entry["user"]["username"] == user and "objectRef" in entry]


def _request(entry: Json) -> Request:
    about = entry["objectRef"]
    resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
    return Request(
        entry["verb"],
        about.get("apiGroup", ""),
        resource,
        about.get("namespace", ""),
        about.get("name", ""),
        entry.get("responseStatus", {}).get("code", 0),
        entry.get("userAgent", ""),
    )
