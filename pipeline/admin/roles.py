"""Roles of schedulerlog in OpenSearch's security plugin. Safe to run again at any time.

Roles go through the plugin's API, which every distribution has; ``to_files`` is for operators who keep the plugin's
files themselves.
"""

from typing import Any, Final

import yaml
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import OpenSearchException

from pipeline.admin.provision import Say
from runtime.errors import UnreachableError
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_refusal
from runtime.opensearch.roles import ROLES
from runtime.settings.opensearch_connection import OpenSearchConnection

_API: Final = "/_plugins/_security/api"


def _make_mapping(role: str) -> dict[str, Any]:
    """Map a role to the user of its name, and to the users to whom an identity provider gives it."""
    return {"users": [role], "backend_roles": [role]}


def to_files() -> str:
    """Encode ``roles.yml`` and ``roles_mapping.yml`` of the plugin, as parts of one document."""
    files = {"roles.yml": ROLES, "roles_mapping.yml": {role: _make_mapping(role) for role in ROLES}}
    return "\n".join(f"# {name}\n{yaml.safe_dump(content, sort_keys=False)}" for name, content in files.items())


async def make_roles(connection: OpenSearchConnection, say: Say) -> None:
    """Make or correct every role; ``say`` gets a line about each. Raises ``UnreachableError``."""
    client = create_client(connection)
    try:
        for name, role in ROLES.items():
            await client.transport.perform_request("PUT", f"{_API}/roles/{name}", body=role)
            say(f"role {name}: {await _map(client, name)}")
    except OpenSearchException as error:
        whose = "all rights in its security plugin (role all_access, or a certificate of its administrators)"
        raise UnreachableError(f"OpenSearch at {connection.opensearch_url}: {explain_refusal(error, whose)}") from None
    finally:
        await client.close()


async def _map(client: AsyncOpenSearch, role: str) -> str:
    path = f"{_API}/rolesmapping/{role}"
    mappings: dict[str, Any] = await client.transport.perform_request("GET", path, ignore=(404,))
    # Who has a role is the operator's decision: a mapping that is there is left as it is.
    if role in mappings:
        return "written, its mapping is left as it is"
    await client.transport.perform_request("PUT", path, body=_make_mapping(role))
    return "written, for the user or the backend role of its name"
