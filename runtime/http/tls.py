"""TLS towards servers: the certificates that we trust, and the one by which we are known."""

import ssl
from pathlib import Path


def build_client_context(
    ca_file: Path | None, cert_file: Path | None = None, key_file: Path | None = None, key_password: str | None = None
) -> ssl.SSLContext:
    """Build a context that verifies the server and its host name. Without ``ca_file`` it trusts the system's
    authorities.

    Raises ``ValueError``, whose message names the file, and never a password.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"{ca_file}: {_describe_cause(error, 'no certificates in PEM form')}") from None
    if cert_file:
        try:
            # A function and not the text: without any password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(cert_file, key_file, password=lambda: key_password or "")
        except (OSError, ssl.SSLError) as error:
            files = f"{cert_file} and {key_file}" if key_file else str(cert_file)
            wrong = "no certificate with its private key in PEM form, or the key needs another password"
            raise ValueError(f"{files}: {_describe_cause(error, wrong)}") from None
    return context


def _describe_cause(error: OSError, of_content: str) -> str:
    """Describe the cause: the system's words for an unreadable file, ``of_content`` for a readable one."""
    # An SSLError is an OSError too, and its words are OpenSSL's own: "[X509: NO_CERTIFICATE_OR_CRL_FOUND] …".
    return of_content if isinstance(error, ssl.SSLError) else str(error.strerror or error)
