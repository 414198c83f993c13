"""Refusals of OpenSearch in words for an operator: the cause, and what to do about it. Pure."""

import ssl
from http import HTTPStatus

from opensearchpy.exceptions import OpenSearchException, TransportError

from runtime.settings.addresses import without_user_info
from runtime.settings.variables import variable


def explained(error: OpenSearchException, role: str) -> str:
    """Explain the error in one line, with the next step where there is one. ``role`` is the role that the user of this
    process needs."""
    # Of an error without a status the text has itself again as its cause.
    known = isinstance(error, TransportError) and not isinstance(error.status_code, int)
    return without_user_info(f"{error.error if known else error}{next_step(error, role)}")


def why_untrusted(error: Exception) -> str:
    """Explain why we refused OpenSearch's certificate; empty where we did not. The next try would end in the same
    way."""
    # The client keeps the error of the connection in its own, and that one the error of TLS.
    refused = getattr(error, "info", None)
    found = getattr(refused, "certificate_error", refused)
    return str(found.verify_message) if isinstance(found, ssl.SSLCertVerificationError) else ""


def is_untrusted(error: Exception) -> bool:
    return bool(why_untrusted(error))


def next_step(error: OpenSearchException, role: str) -> str:
    """Suggest the next step as the end of a message about the error: empty, or a colon and what to do."""
    status = error.status_code if isinstance(error, TransportError) else None
    if status == HTTPStatus.UNAUTHORIZED:
        return f": correct {variable('opensearch_username')} and its password, or the client certificate"
    if status == HTTPStatus.FORBIDDEN:
        return f": its user needs {role}"
    if is_untrusted(error):
        return f": name the authority that signed its certificate in {variable('opensearch_ca_file')}"
    return ""
