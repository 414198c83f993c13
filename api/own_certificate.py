"""The command ``python -m api certificate``: creates a certificate for the API and its authority, if there is none.

For clusters without cert-manager or a public authority. The command throws the authority's key away: it signs only this
certificate, so that who trusts the authority trusts nothing else.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from runtime.http.certificate_authority import Authority
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import KubeApiError

LIFETIME: Final = timedelta(days=3650)
"""Lifetime of the certificate, which nothing renews. Use cert-manager for shorter lifetimes."""
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""Names of the files, as in a Secret of the type kubernetes.io/tls."""
LABELS: Final = {"app.kubernetes.io/name": "schedulerlog", "app.kubernetes.io/part-of": "schedulerlog"}


def issue_files(names: Sequence[str]) -> dict[str, bytes]:
    """Issue certificate, key and authority in PEM form, by the names of their files."""
    authority = Authority.create("schedulerlog API", LIFETIME)
    certificate, key = authority.issue(names[0], tuple(names), lifetime=LIFETIME)
    return {CA: authority.certificate_pem, CERTIFICATE: certificate, KEY: key}


def write_files(folder: Path, names: Sequence[str]) -> bool:
    """Write a new certificate into the folder; return False if it already has one."""
    if (folder / CERTIFICATE).exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in issue_files(names).items():
        path = folder / name
        path.touch(mode=0o600 if name == KEY else 0o644)
        path.write_bytes(content)
    return True


async def write_secret(
    load: LoadConfiguration, namespace: str, secret: str, names: Sequence[str], api_service: str = ""
) -> bool:
    """Create the Secret; return False if it exists. The APIService ``api_service`` will trust its authority.

    Raises ``KubeApiError`` and ``KubeConfigError``.
    """
    client = Client(await ApiCredentials.open(load))
    try:
        stored, is_new = await _read_or_create(client, namespace, secret, names)
        if api_service:
            path = f"/apis/apiregistration.k8s.io/v1/apiservices/{api_service}"
            # A Secret of another authority has no ca.crt; its operator names that authority in the APIService.
            if ca := stored["data"].get(CA):
                await client.patch(path, {"spec": {"caBundle": ca}})
        return is_new
    finally:
        await client.close()


async def _read_or_create(client: Client, namespace: str, secret: str, names: Sequence[str]) -> tuple[Any, bool]:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    try:
        return await client.get(f"{secrets}/{secret}"), False
    except KubeApiError as error:
        if not error.is_missing:
            raise
    data = {name: b64encode(content).decode() for name, content in issue_files(names).items()}
    manifest = {"metadata": {"name": secret, "labels": LABELS}, "type": "kubernetes.io/tls", "data": data}
    try:
        return await client.create(secrets, manifest), True
    except KubeApiError as error:
        # Another run of this command was first.
        if not error.is_conflict:
            raise
        return await client.get(f"{secrets}/{secret}"), False
