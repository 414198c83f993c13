"""Rights at Kafka: those that deploy/ gives to its users, granted to a real broker, and those its log shows in use."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

USERS: Final = Path("deploy/kustomize/components/strimzi/users.yaml")
# Numbers of Kafka's protocol: ResourceType, PatternType, AclOperation, AclPermissionType.
_KINDS: Final = {"topic": 2, "group": 3, "cluster": 4}
_PATTERNS: Final = {"literal": 3, "prefix": 4}
_OPERATIONS: Final = {
    "Read": 3, "Write": 4, "Create": 5, "Alter": 7, "Describe": 8, "DescribeConfigs": 10, "AlterConfigs": 11,
}  # fmt: skip
_ALLOW: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class Decision:
    """Decision of the broker's authorizer."""

    user: str
    is_allowed: bool
    kind: str
    name: str
    operation: str
    request: str


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One operation on a resource, in Strimzi's words."""

    kind: str
    name: str
    operation: str
    pattern: str = "literal"

    def is_for(self, decision: Decision) -> bool:
        """Tell whether the decision was about this, and not about another operation that this right implies."""
        name = decision.name[: len(self.name)] if self.pattern == "prefix" else decision.name
        return (self.kind, self.operation, self.name) == (decision.kind, decision.operation, name)


PROVISION: Final = {
    Right("topic", "schedulerlog.", operation, "prefix")
    for operation in ("Create", "Alter", "DescribeConfigs", "AlterConfigs")
}
"""Rights of the user that runs ``provision``, as docs/security.md has them."""


def read_deployed_rights() -> dict[str, set[Right]]:
    """Read the rights of each user of the component."""
    users = yaml.load_all(USERS.read_text(), yaml.CSafeLoader)
    return {user["metadata"]["name"]: set(_list_rights(user["spec"]["authorization"]["acls"])) for user in users}


def _list_rights(rules: Iterable[Mapping[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        resource = rule["resource"]
        for operation in rule["operations"]:
            yield Right(resource["type"], resource["name"], operation, resource["patternType"])


class _Creations(CreateAclsRequest):  # type: ignore[misc]
    """Many in one request: aiokafka has a request for one."""

    def __init__(self, creations: Iterable[tuple[object, ...]]) -> None:
        self._creations = list(creations)

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(self._creations)


async def grant(bootstrap_servers: str, rights: Mapping[str, Iterable[Right]]) -> None:
    """Give them to the users, by password or token and by certificate, as Strimzi's user operator would."""
    creations = [
        (_KINDS[acl.kind], acl.name, _PATTERNS[acl.pattern], principal, "*", _OPERATIONS[acl.operation], _ALLOW)
        for user, rights_of_user in rights.items()
        for acl in rights_of_user
        for principal in (f"User:{user}", f"User:CN={user}")
    ]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        answer = await admin._send_to_controller(_Creations(creations))
        assert {code for code, _ in answer.creation_responses} <= {0}, answer
    finally:
        await admin.close()


_LINE: Final = re.compile(
    r"Principal = User:(?:CN=)?(\S+) is (Allowed|Denied) operation = (\S+) from host = \S+ "
    r"on resource = (\w+):LITERAL:(\S+) for request = (\w+)"
)


def parse_decisions(log: str) -> set[Decision]:
    """Parse from the authorizer's log the decisions about all users but the tests' own."""
    return {
        Decision(user, answer == "Allowed", kind.lower(), name, _write_word(operation), request)
        for user, answer, operation, kind, name, request in _LINE.findall(log)
        if user != "ANONYMOUS"
    }


def _write_word(operation: str) -> str:
    """Write ``DESCRIBE_CONFIGS`` as Strimzi has it."""
    return "".join(word.capitalize() for word in operation.split("_"))
