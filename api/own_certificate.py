"""``python -m api certificate``: makes a certificate for the API, by an authority of its own, where there is none.

For clusters without cert-manager or a public authority. The authority's key is thrown away: it signs this one
certificate, so that trusting it means trusting nothing else.
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
"""Nothing renews it. Who wants shorter ones has an authority for them, or cert-manager."""
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""The files, named as in a Secret of the type kubernetes.io/tls."""
LABELS: Final = {"app.kubernetes.io/name": "schedulerlog", "app.kubernetes.io/part-of": "schedulerlog"}


def new_files(names: Sequence[str]) -> dict[str, bytes]:
    """Certificate, key and authority in PEM form, by their file's name."""
    authority = Authority.new("schedulerlog API", LIFETIME)
    certificate, key = authority.issue(names[0], tuple(names), lifetime=LIFETIME)
    return {CA: authority.certificate_pem, CERTIFICATE: certificate, KEY: key}


def write_files(folder: Path, names: Sequence[str]) -> bool:
    """Write them into the folder; False where a certificate is there already."""
    if (folder / CERTIFICATE).exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in new_files(names).items():
        path = folder / name
        path.touch(mode=0o600 if name == KEY else 0o644)
        path.write_bytes(content)
    return True


async def write_secret(
    load: LoadConfiguration, namespace: str, secret: str, names: Sequence[str], api_service: str = ""
) -> bool:
    """Make the Secret; False where it is there already. ``api_service`` is to trust its authority.

    Raises ``KubeApiError`` and ``KubeConfigError``.
    """
    client = Client(await ApiCredentials.open(load))
    try:
        found, is_new = await _found_or_made(client, namespace, secret, names)
        if api_service:
            path = f"/apis/apiregistration.k8s.io/v1/apiservices/{api_service}"
            # A certificate of another authority has no ca.crt: that one is to be named by who knows it.
            if ca := found["data"].get(CA):
                await client.patch(path, {"spec": {"caBundle": ca}})
        return is_new
    finally:
        await client.close()


async def _found_or_made(client: Client, namespace: str, secret: str, names: Sequence[str]) -> tuple[Any, bool]:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    try:
        return await client.get(f"{secrets}/{secret}"), False
    except KubeApiError as error:
        if not error.is_missing:
            raise
    data = {name: b64encode(content).decode() for name, content in new_files(names).items()}
    made = {"metadata": {"name": secret, "labels": LABELS}, "type": "kubernetes.io/tls", "data": data}
    try:
        return await client.create(secrets, made), True
    except KubeApiError as error:
        # Another run of this command was first.
        if not error.is_conflict:
            raise
        return await client.get(f"{secrets}/{secret}"), False
