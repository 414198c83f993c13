"""The command ``python -m api certificate``: creates a certificate for the API and its authority, and renews its own.

For clusters without cert-manager or a public authority. The command throws the authority's key away: it signs only this
certificate, so that who trusts the authority trusts nothing else. A renewed certificate hence has another authority,
which ``ca.crt`` lists before the one that callers may have trusted until now.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from cryptography import x509

from runtime.http.certificate_authority import Authority
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import KubeApiError

LIFETIME: Final = timedelta(days=397)
"""Lifetime of the certificate; Apple's clients take none that lives longer than 398 days."""
RENEWED_BEFORE: Final = timedelta(days=60)
"""Remaining lifetime below which the command renews a certificate of its own."""
ISSUER: Final = "schedulerlog API"
_END: Final = b"-----END CERTIFICATE-----\n"
Outcome = Literal["made", "renewed", "unchanged"]
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
"""Names of the files, as in a Secret of the type kubernetes.io/tls."""
LABELS: Final = {"app.kubernetes.io/name": "schedulerlog", "app.kubernetes.io/part-of": "schedulerlog"}


def issue_files(names: Sequence[str], authorities: bytes = b"") -> dict[str, bytes]:
    """Issue certificate, key and authority in PEM form, by the names of their files.

    ``authorities``: of the certificate before. The first of them, which signed it, stays trusted: callers that read
    ``ca.crt`` before the pods read the new pair still meet the old one.
    """
    authority = Authority.create(ISSUER, LIFETIME)
    certificate, key = authority.issue(names[0], tuple(names), lifetime=LIFETIME)
    end = authorities.find(_END) + len(_END)
    before = authorities[:end] if _END in authorities else b""
    return {CA: authority.certificate_pem + before, CERTIFICATE: certificate, KEY: key}


def is_due(certificate: bytes, now: datetime) -> bool:
    """Tell whether a certificate (PEM) is one that this command made, and ends soon."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return False
    is_own = parsed.issuer.rfc4514_string() == f"CN={ISSUER}"
    return is_own and parsed.not_valid_after_utc - now < RENEWED_BEFORE


def write_files(folder: Path, names: Sequence[str], now: datetime | None = None) -> Outcome:
    """Write a new certificate into the folder, unless it has one that ends later or that another authority signed."""
    before = {path.name: path.read_bytes() for name in (CA, CERTIFICATE) if (path := folder / name).exists()}
    if CERTIFICATE in before and not is_due(before[CERTIFICATE], now or datetime.now(UTC)):
        return "unchanged"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in issue_files(names, before.get(CA, b"")).items():
        path = folder / name
        path.touch(mode=0o600 if name == KEY else 0o644)
        path.write_bytes(content)
    return "renewed" if CERTIFICATE in before else "made"


async def write_secret(
    load: LoadConfiguration,
    namespace: str,
    secret: str,
    names: Sequence[str],
    api_service: str = "",
    now: datetime | None = None,
) -> Outcome:
    """Create the Secret, or renew it. The APIService ``api_service`` will trust its authority.

    Raises ``KubeApiError`` and ``KubeConfigError``.
    """
    client = Client(await ApiCredentials.open(load))
    try:
        stored, outcome = await _read_or_write(client, namespace, secret, names, now or datetime.now(UTC))
        if api_service:
            path = f"/apis/apiregistration.k8s.io/v1/apiservices/{api_service}"
            # A Secret of another authority has no ca.crt; its operator names that authority in the APIService.
            if ca := stored["data"].get(CA):
                await client.patch(path, {"spec": {"caBundle": ca}})
        return outcome
    finally:
        await client.close()


async def _read_or_write(
    client: Client, namespace: str, secret: str, names: Sequence[str], now: datetime
) -> tuple[Any, Outcome]:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    try:
        stored = await client.get(f"{secrets}/{secret}")
    except KubeApiError as error:
        if not error.is_missing:
            raise
        manifest = {"metadata": {"name": secret, "labels": LABELS}, "type": "kubernetes.io/tls"}
        return await _write(client, secrets, manifest | {"data": _encode(issue_files(names))}, secret)
    data = {name: b64decode(content) for name, content in stored.get("data", {}).items()}
    if not is_due(data.get(CERTIFICATE, b""), now):
        return stored, "unchanged"
    files = issue_files(names, data.get(CA, b""))
    version = stored["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": version}, "data": _encode(files)}
    return await client.patch(f"{secrets}/{secret}", change), "renewed"


async def _write(client: Client, secrets: str, manifest: Mapping[str, Any], secret: str) -> tuple[Any, Outcome]:
    try:
        return await client.create(secrets, manifest), "made"
    except KubeApiError as error:
        # Another run of this command was first.
        if not error.is_conflict:
            raise
        return await client.get(f"{secrets}/{secret}"), "unchanged"


def _encode(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(content).decode() for name, content in files.items()}
