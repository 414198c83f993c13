"""Delivery of one message to one target: a webhook, a server of mail, or a receiver of CloudEvents."""

import asyncio
import smtplib
import ssl
from typing import Any, Final

import aiohttp

from pipeline.notify.messages import Message, build_cloud_event, build_mail
from pipeline.notify.targets import CloudEventsTarget, MailTarget, Target, WebhookTarget

_TIMEOUT_SECONDS: Final = 10.0
_BUSY: Final = (408, 429)
_REFUSED: Final = (401, 403, 404, 410)
"""A token, or an address that is one, may be about to be replaced."""
_SERVER_ERROR: Final = 500


class DeliveryError(Exception):
    """Message that was not delivered. ``is_final``: another try can't help."""

    def __init__(self, cause: str, *, is_final: bool) -> None:
        super().__init__(cause)
        self.is_final = is_final


async def deliver(session: aiohttp.ClientSession, target: Target, message: Message, cluster: str) -> None:
    """Deliver the message. Raises ``DeliveryError``."""
    match target:
        case WebhookTarget():
            url = target.url_file.get_secret_value()  # type: ignore[attr-defined]
            await _post(session, url, {"text": message.write_text(target.language)}, "application/json", "")
        case CloudEventsTarget():
            token = target.token_file.get_secret_value() if target.token_file else ""  # type: ignore[attr-defined]
            event = build_cloud_event(message, cluster)
            await _post(session, target.url, event, "application/cloudevents+json", token)
        case MailTarget():
            await asyncio.to_thread(_send_mail, target, message)


async def _post(session: aiohttp.ClientSession, url: str, body: Any, content_type: str, token: str) -> None:
    headers = {"Content-Type": content_type} | ({"Authorization": f"Bearer {token}"} if token else {})
    limits = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    try:
        # A redirect could lead a secret to another host.
        async with session.post(url, json=body, headers=headers, timeout=limits, allow_redirects=False) as response:
            if response.status < 300:
                return
            is_final = response.status not in _BUSY + _REFUSED and response.status < _SERVER_ERROR
            raise DeliveryError(f"it answers {response.status}", is_final=is_final)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        # Without the address, which is a secret.
        raise DeliveryError(type(error).__name__, is_final=False) from None
    except ValueError:
        raise DeliveryError("its address is none", is_final=False) from None


def _send_mail(target: MailTarget, message: Message) -> None:
    host, _, port = target.smtp.rpartition(":")
    mail = build_mail(message, target)
    try:
        trusted = ssl.create_default_context(cafile=target.ca_file)
        if target.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, int(port), timeout=_TIMEOUT_SECONDS, context=trusted)
        else:
            server = smtplib.SMTP(host, int(port), timeout=_TIMEOUT_SECONDS)
        with server:
            if target.security == "starttls":
                server.starttls(context=trusted)
            if target.username and target.password_file:
                server.login(target.username, target.password_file.get_secret_value())  # type: ignore[attr-defined]
            server.send_message(mail)
    except smtplib.SMTPResponseException as error:
        # 5xx of SMTP is for good (RFC 5321, 4.2.1), but a password may be mended.
        is_final = error.smtp_code >= _SERVER_ERROR and not isinstance(error, smtplib.SMTPAuthenticationError)
        raise DeliveryError(f"it answers {error.smtp_code}", is_final=is_final) from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise DeliveryError(f"it refuses every recipient ({codes[0]})", is_final=min(codes) >= _SERVER_ERROR) from None
    except (OSError, smtplib.SMTPException) as error:
        raise DeliveryError(type(error).__name__, is_final=False) from None
