"""Password of each connection to a broker, and reasons why the broker refuses it, with their remedies.

aiokafka opens its connections itself, with what its client was given at first, and leaves their errors in its log: its
callers get only ``Unable to bootstrap``. It also overlooks the refusal of a token. So this module replaces its class of
connections and its bootstrap, for all clients of this process. Its version is pinned;
tests/contract/test_library_internals.py names what to read again when the pin moves.
"""

import ssl
from contextvars import ContextVar
from typing import Any, Final

import aiokafka.conn
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanismError
from pydantic import SecretStr

from runtime.refused_credentials import note_acceptance, note_refusal
from runtime.settings.secret_files import is_fixed, reveal_secret
from runtime.settings.variables import derive_variable

_NAME_MISMATCHES: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_HUNG_UP: Final = (ssl.SSLError, KafkaConnectionError, ConnectionResetError, ConnectionAbortedError)
_bootstrap: Final = AIOKafkaClient.bootstrap


class RefusedError(KafkaError):  # type: ignore[misc]
    """The broker refuses us, or we refuse it. Worth another try, because operators replace certificates, tokens and
    users.
    """

    retriable = True

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(cause, remedy)
        self.cause, self.remedy = cause, remedy

    def __str__(self) -> str:
        return f"{self.cause}. {self.remedy}" if self.remedy else self.cause


_refusals: ContextVar[list[RefusedError]] = ContextVar("_refusals")
"""The refusals of the bootstrap that is running in this task."""


class ExplainedConnection(AIOKafkaConnection):  # type: ignore[misc]
    """Connection whose failure names the remedy. It reads its password when it connects: a client, which opens one
    connection after another, lives longer than it does."""

    def __init__(self, *address: Any, sasl_plain_password: SecretStr | None = None, **options: Any) -> None:
        """Take the secret in place of its text."""
        super().__init__(*address, **options)
        self._password = sasl_plain_password
        self._variable = derive_variable("kafka_password") if is_fixed(sasl_plain_password) else ""

    async def connect(self) -> Any:
        address = f"{self.host}:{self.port}"
        self._sasl_plain_password = reveal_secret(self._password)
        try:
            reader = await super().connect()
        # A token that can't be had.
        except RefusedError as error:
            _refusals.get([]).append(error)
            note_refusal("Kafka", address, str(error))
            raise
        except (OSError, KafkaError) as error:
            if not (remedy := _suggest_remedy(error, self._sasl_mechanism)):
                raise
            refused = RefusedError(f"{address}: {_describe_refusal(error, self._sasl_mechanism)}", remedy)
            _refusals.get([]).append(refused)
            # A broker that is just ending hangs up too.
            if not isinstance(error, _HUNG_UP) or _read_alert(error):
                is_password = isinstance(error, SaslAuthenticationFailed)
                note_refusal("Kafka", address, str(refused), self._variable if is_password else "")
            raise refused from error
        note_acceptance("Kafka", address, self._variable)
        return reader

    def authenticator_oauth(self) -> Any:
        return TokenAuthenticator(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


class TokenAuthenticator(OAuthAuthenticator):  # type: ignore[misc]
    """Authenticator that recognizes the refusal of a token.

    A broker refuses a token with a challenge and no error (RFC 7628, section 3.2.2). aiokafka takes that for success,
    and then sees a cluster without brokers.
    """

    async def step(self, payload: bytes | None) -> Any:
        if self._token_sent and payload:
            raise SaslAuthenticationFailed(f"the broker refuses the token: {payload.decode(errors='replace')}")
        return await super().step(payload)


async def connect_or_explain(client: AIOKafkaClient) -> None:
    """Connect aiokafka's client; if that fails, raise the last error of a connection instead of the client's."""
    refusals: list[RefusedError] = []
    outer = _refusals.set(refusals)
    try:
        await _bootstrap(client)
    except KafkaConnectionError:
        if refusals:
            raise refusals[-1] from None
        raise
    finally:
        _refusals.reset(outer)


def _describe_refusal(error: Exception, mechanism: str | None) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if alert := _read_alert(error):
        return f"it refuses our certificate ({alert})"
    if isinstance(error, UnsupportedSaslMechanismError):
        return f"it does not take {mechanism}"
    if isinstance(error, SaslAuthenticationFailed) and error.args:
        return str(error.args[0])
    return str(error) or type(error).__name__


def _read_alert(error: Exception) -> str:
    """Read the broker's verdict on our certificate. With TLS 1.3 it comes after the handshake, when we already wait for
    the first answer."""
    cause = error.__cause__
    return cause.reason or "TLS" if isinstance(error, KafkaConnectionError) and isinstance(cause, ssl.SSLError) else ""


def _suggest_remedy(error: Exception, mechanism: str | None) -> str:
    """Suggest what an operator can do; empty where the error is no refusal."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NAME_MISMATCHES:
            servers = derive_variable("kafka_bootstrap_servers")
            return f"Name it in {servers} and advertised.listeners as its certificate does"
        return f"{derive_variable('kafka_ca_file')} has to hold the authority that signed it"
    if isinstance(error, UnsupportedSaslMechanismError):
        return f"{derive_variable('kafka_sasl_mechanism')} has to be another"
    if isinstance(error, SaslAuthenticationFailed):
        if mechanism == "OAUTHBEARER":
            return "Its issuer, audience and end have to be as the broker wants them"
        return f"{derive_variable('kafka_username')} and its password have to be those of a user that it knows"
    if _read_alert(error):
        return f"{derive_variable('kafka_cert_file')} has to be signed by an authority that it trusts, and not expired"
    if isinstance(error, _HUNG_UP):
        protocol = derive_variable("kafka_security_protocol")
        return f"If it is not just starting or ending, {protocol} is not that of this port"
    return ""


aiokafka.conn.AIOKafkaConnection = ExplainedConnection
AIOKafkaClient.bootstrap = connect_or_explain
