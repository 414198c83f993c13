"""Arguments that every client of Kafka takes besides its own options: addresses, TLS, SASL.

Every connection of a client reads the files, and reads, or asks for, its token: clients reconnect by themselves.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from aiokafka.abc import AbstractTokenProvider
from pydantic import SecretStr

# These modules change every client: it explains failed connections, bounds unpacked records, and asks less when quiet.
import runtime.kafka.quiet_fetches
import runtime.kafka.unpacking  # noqa: F401
from runtime.kafka.refusals import RefusedError
from runtime.refused_credentials import note_acceptance, note_refusal
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.secret_files import is_fixed, reveal_secret
from runtime.settings.variables import derive_variable

_NO_CLIENT: Final = (400, 401)
"""Answers to a client that the server does not know, or whose secret is wrong (RFC 6749, section 5.2)."""
TOKEN_SECONDS: Final = 10.0
"""Limit of a request for a token."""
_RENEW_BEFORE_SECONDS: Final = 30.0
"""Seconds before its end from which a token serves no further connection."""


class CredentialsError(RefusedError):
    """A token is not available now; worth another try, as an unreachable broker is."""


def build_client_arguments(kafka: KafkaConnection) -> dict[str, Any]:
    """Build the arguments that every client of aiokafka takes.

    To be called within the event loop where OAUTHBEARER is used.
    """
    return {
        "bootstrap_servers": kafka.kafka_bootstrap_servers,
        "security_protocol": kafka.kafka_security_protocol.upper(),
        "ssl_context": kafka.kafka_ssl_context,
        **(_build_sasl_arguments(kafka) if kafka.uses_sasl else {}),
    }


def create_token_provider(kafka: KafkaConnection) -> AbstractTokenProvider:
    """Create the provider of tokens for OAUTHBEARER: from the file, or by client credentials."""
    if kafka.kafka_oauth_token_file:
        return TokenFile(kafka.kafka_oauth_token_file)
    return ClientCredentials(
        str(kafka.kafka_oauth_token_url),
        str(kafka.kafka_oauth_client_id),
        kafka.kafka_oauth_client_secret,
    )


def _build_sasl_arguments(kafka: KafkaConnection) -> dict[str, Any]:
    if kafka.kafka_sasl_mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": create_token_provider(kafka)}
    return {
        "sasl_mechanism": kafka.kafka_sasl_mechanism,
        "sasl_plain_username": kafka.kafka_username,
        "sasl_plain_password": kafka.kafka_password,
    }


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Provider of the token in a file, read for every connection: a kubelet replaces a projected token in time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """Read the token from the file. Raises ``CredentialsError``."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"{self._path}: {getattr(error, 'strerror', None) or 'is not a token'}") from None
        if not text:
            raise CredentialsError(f"{self._path} is empty")
        return text


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens of an OAuth 2.0 server by client credentials (RFC 6749, section 4.4), each used until shortly before its
    end. TLS trusts the system's authorities, or those of ``SSL_CERT_FILE``."""

    def __init__(
        self, url: str, client_id: str, client_secret: SecretStr | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url, self._client_id, self._client_secret, self._clock = url, client_id, client_secret, clock
        self._variable = derive_variable("kafka_oauth_client_secret") if is_fixed(client_secret) else ""
        self._token, self._used_until = "", 0.0
        # Connections to all brokers are opened at once: one of them asks.
        self._asking = asyncio.Lock()

    async def token(self) -> str:
        """Fetch a token. Raises ``CredentialsError``, which does not show the secret."""
        async with self._asking:
            if not self._token or self._clock() >= self._used_until:
                answer = await self._ask()
                # RFC 6749 recommends expires_in; without it a token is used once.
                self._used_until = self._clock() + float(answer.get("expires_in", 0)) - _RENEW_BEFORE_SECONDS
                self._token = str(answer["access_token"])
            return self._token

    async def _ask(self) -> dict[str, Any]:
        import aiohttp  # a fifth of a second of every start that no other mechanism needs

        login = {"Authorization": aiohttp.encode_basic_auth(self._client_id, reveal_secret(self._client_secret))}
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TOKEN_SECONDS), trust_env=True) as session,
                session.post(self._url, data={"grant_type": "client_credentials"}, headers=login) as response,
            ):
                answer = await response.json(content_type=None)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise CredentialsError(f"{self._url}: {type(error).__name__}: {error}") from None
        if response.status != 200 or not isinstance(answer, dict) or "access_token" not in answer:
            cause = answer.get("error", "") if isinstance(answer, dict) else ""
            words = f"{self._url}: HTTP {response.status} without a token {cause}".rstrip()
            who = f"{derive_variable('kafka_oauth_client_id')} and its secret"
            refused = CredentialsError(words, f"{who} have to be those of a client that the server knows")
            if response.status in _NO_CLIENT:
                note_refusal("Kafka", self._url, str(refused), self._variable)
            raise refused
        note_acceptance("Kafka", self._url, self._variable)
        return answer
