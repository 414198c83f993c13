"""Refusals of OpenSearch in words for an operator: the cause, and what to do about it. Pure."""

import ssl
from http import HTTPStatus
from typing import Final

from opensearchpy.exceptions import OpenSearchException, TransportError

from runtime.settings.addresses import without_user_info
from runtime.settings.variables import derive_variable

_ABOUT_CERTIFICATES: Final = ("CERTIFICATE", "UNKNOWN_CA")


def explain_refusal(error: OpenSearchException, role: str) -> str:
    """Explain the error in one line, with a next step if there is one. ``role`` is the role that the user of this
    process needs.
    """
    # The text of an error without a status repeats itself as its cause.
    has_no_status = isinstance(error, TransportError) and not isinstance(error.status_code, int)
    return without_user_info(f"{error.error if has_no_status else error}{suggest_next_step(error, role)}")


def explain_distrust(error: Exception) -> str:
    """Explain why we refused OpenSearch's certificate; empty if we did not. The next try would end in the same way."""
    # The client's error holds the error of the connection, and that holds the error of TLS.
    refused = getattr(error, "info", None)
    cause = getattr(refused, "certificate_error", refused)
    return str(cause.verify_message) if isinstance(cause, ssl.SSLCertVerificationError) else ""


def explain_alert(error: Exception) -> str:
    """Explain why OpenSearch refused our certificate, as TLS names it; empty if it did not."""
    # With TLS 1.3 its verdict comes after the handshake, while we wait for the first answer.
    refused = getattr(error, "info", None)
    cause = getattr(refused, "os_error", getattr(refused, "__cause__", None))
    alert = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    return alert if "ALERT" in alert and any(word in alert for word in _ABOUT_CERTIFICATES) else ""


def is_refused_by_tls(error: Exception) -> bool:
    """Tell whether one of both sides refused the other's certificate."""
    return bool(explain_distrust(error) or explain_alert(error))


def suggest_next_step(error: OpenSearchException, role: str) -> str:
    """Suggest the next step as the end of a message about the error: empty, or a colon and what to do."""
    status = error.status_code if isinstance(error, TransportError) else None
    if status == HTTPStatus.UNAUTHORIZED:
        return f": correct {derive_variable('opensearch_username')} and its password, or the client certificate"
    if status == HTTPStatus.FORBIDDEN:
        return f": its user needs {role}"
    if explain_alert(error):
        return f": correct {derive_variable('opensearch_cert_file')} and its key, which it does not trust"
    if explain_distrust(error):
        return f": name the authority that signed its certificate in {derive_variable('opensearch_ca_file')}"
    return ""
