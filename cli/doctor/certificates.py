"""Certificates: those that servers present, and those in our own files."""

import asyncio
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from cli.doctor.findings import Fault
from runtime.settings.addresses import HostPort

SOON: Final = timedelta(days=14)
SECONDS: Final = 10.0


async def check_server(subject: str, address: HostPort) -> list[Fault]:
    """Check the certificate that a server presents; the stores' own checks report a failed connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only looked at: nothing is sent over this connection.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(
                address.host, address.port, ssl=context, server_hostname=address.host
            )
    except (OSError, TimeoutError):
        # What can't be reached at all is a finding of the store's own check.
        return []
    presented = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    certificate = x509.load_der_x509_certificate(presented)
    return [*check_names(subject, certificate, address.host), *check_expiry(subject, certificate, datetime.now(UTC))]


def check_file(path: Path) -> list[Fault]:
    """Check the first certificate in a PEM file."""
    try:
        certificates = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        return [Fault("certificates", str(path), f"holds no certificate ({error})", "Write it in PEM form.")]
    return list(check_expiry(str(path), certificates[0], datetime.now(UTC)))


def check_expiry(subject: str, certificate: x509.Certificate, now: datetime) -> Iterator[Fault]:
    left = certificate.not_valid_after_utc - now
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if left < timedelta():
        yield Fault("certificates", subject, f"the certificate expired on {until}", "Renew it.")
    elif left < SOON:
        yield Fault("certificates", subject, f"the certificate expires on {until}", "Renew it, or see why it was not.")
    if certificate.not_valid_before_utc > now:
        since = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M}"
        yield Fault("certificates", subject, f"the certificate is valid from {since} on", "Is a clock wrong?")


def check_names(subject: str, certificate: x509.Certificate, host: str) -> Iterator[Fault]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names: list[str] = []
    else:
        names = [*extension.get_values_for_type(x509.DNSName), *map(str, extension.get_values_for_type(x509.IPAddress))]
    if not any(_covers(name, host) for name in names):
        problem = f"the certificate is for {', '.join(names) or 'no name'}, not for {host}"
        yield Fault("certificates", subject, problem, "Use one of its names as the address, or add this one to it.")


def _covers(name: str, host: str) -> bool:
    if name.startswith("*."):
        return host.lower().partition(".")[2] == name[2:].lower()
    return name.lower() == host.lower()
