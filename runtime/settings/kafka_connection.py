"""Connection settings of Kafka: addresses, TLS, SASL. ``runtime.kafka.security`` makes clients' arguments of them."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from runtime.errors import SettingError
from runtime.settings.present_context import PresentContext
from runtime.settings.settings import BootstrapServers, EnvironmentSettings, Flag, Url, read
from runtime.settings.variables import KAFKA, derive_variable

SecurityProtocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
_WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OAUTH_FIELDS: Final = (
    "kafka_oauth_token_file", "kafka_oauth_token_url", "kafka_oauth_client_id", "kafka_oauth_client_secret",
)  # fmt: skip
_CLIENT_CREDENTIALS: Final = _OAUTH_FIELDS[1:]


def _to_lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _to_upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class KafkaSecurity(EnvironmentSettings):
    """Security of the connection, without its addresses. Checked together, without a connection."""

    kafka_security_protocol: Annotated[
        SecurityProtocol, BeforeValidator(_to_lower), Flag(metavar="plaintext|ssl|sasl_plaintext|sasl_ssl")
    ] = "plaintext"
    """Protocol of the connection to Kafka: over TLS (ssl), with a name and proof (sasl), both or neither."""
    kafka_sasl_mechanism: Annotated[
        SaslMechanism | None, BeforeValidator(_to_upper), Flag(metavar="PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER")
    ] = None
    """Mechanism by which sasl_plaintext and sasl_ssl prove the identity of this process."""
    kafka_username: str | None = None
    """For PLAIN and SCRAM."""
    kafka_password: SecretStr | None = None
    """For PLAIN and SCRAM."""
    kafka_ca_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The authorities that may have signed the brokers' certificates, in PEM form; default: the system's."""
    kafka_cert_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Our certificate, in PEM form, where the brokers ask for one."""
    kafka_key_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The private key of our certificate."""
    kafka_key_password: SecretStr | None = None
    """The password of that key, if it has one."""
    kafka_oauth_token_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """For OAUTHBEARER: a file with a token, as of a projected service account; read for every connection."""
    kafka_oauth_token_url: Annotated[Url | None, Flag(metavar="URL")] = None
    """For OAUTHBEARER: where tokens are asked for by client credentials."""
    kafka_oauth_client_id: str | None = None
    """For OAUTHBEARER by client credentials."""
    kafka_oauth_client_secret: SecretStr | None = None
    """For OAUTHBEARER by client credentials."""

    @property
    def uses_tls(self) -> bool:
        return self.kafka_security_protocol in ("ssl", "sasl_ssl")

    @property
    def uses_sasl(self) -> bool:
        return self.kafka_security_protocol in ("sasl_plaintext", "sasl_ssl")

    @cached_property
    def kafka_ssl_context(self) -> PresentContext | None:
        """TLS context of all clients; None without TLS."""
        if not self.uses_tls:
            return None
        return PresentContext(
            "Kafka", self.kafka_ca_file, self.kafka_cert_file, self.kafka_key_file, self.kafka_key_password
        )

    @model_validator(mode="after")
    def _has_what_its_protocol_needs(self) -> Self:
        protocol, mechanism = derive_variable("kafka_security_protocol"), derive_variable("kafka_sasl_mechanism")
        unused = [] if self.uses_tls else ["kafka_ca_file", "kafka_cert_file", "kafka_key_file", "kafka_key_password"]
        if not self.uses_sasl:
            unused += ["kafka_sasl_mechanism", "kafka_username", "kafka_password", *_OAUTH_FIELDS]
        # An unused certificate or password means that somebody takes the connection for safer than it is.
        if unused_variable := self._find_variable(unused):
            raise ValueError(f"{unused_variable}: has no effect with {protocol}={self.kafka_security_protocol}")
        if self.uses_sasl and not self.kafka_sasl_mechanism:
            raise ValueError(f"{mechanism}: is missing, {self.kafka_security_protocol} needs one")
        return self

    @model_validator(mode="after")
    def _has_what_its_mechanism_needs(self) -> Self:
        if self.kafka_sasl_mechanism in _WITH_PASSWORD:
            self._require(["kafka_username", "kafka_password"])
            self._refuse(_OAUTH_FIELDS)
        elif self.kafka_sasl_mechanism == "OAUTHBEARER":
            self._refuse(["kafka_username", "kafka_password"])
            if self.kafka_oauth_token_file:
                self._refuse(_CLIENT_CREDENTIALS)
            else:
                self._require(_CLIENT_CREDENTIALS)
        return self

    @model_validator(mode="after")
    def _can_read_its_kafka_certificates(self) -> Self:
        if bool(self.kafka_cert_file) != bool(self.kafka_key_file):
            missing = "kafka_key_file" if self.kafka_cert_file else "kafka_cert_file"
            raise ValueError(f"{derive_variable(missing)}: is missing, a certificate needs its key")
        try:
            self.kafka_ssl_context  # noqa: B018 - its first use reads the files
        except ValueError as error:
            raise ValueError(f"TLS to Kafka: {error}") from None
        return self

    def _find_variable(self, names: list[str] | tuple[str, ...]) -> str:
        """Find the variable of the first of these fields that has a value; empty if none has."""
        return next((derive_variable(name) for name in names if getattr(self, name) is not None), "")

    def _require(self, names: list[str] | tuple[str, ...]) -> None:
        if missing := next((name for name in names if getattr(self, name) is None), ""):
            raise ValueError(f"{derive_variable(missing)}: is missing, {self.kafka_sasl_mechanism} needs it")

    def _refuse(self, names: list[str] | tuple[str, ...]) -> None:
        if unused_variable := self._find_variable(names):
            raise ValueError(f"{unused_variable}: has no effect here, leave it out ({self.kafka_sasl_mechanism})")


_ADDRESSES: Final = Flag(("--kafka", "--kafka-bootstrap-servers"), metavar="HOST:PORT,…")


class KafkaConnection(KafkaSecurity):
    """Connection of processes that need Kafka."""

    kafka_bootstrap_servers: Annotated[BootstrapServers, _ADDRESSES]
    """Addresses of any of Kafka's brokers."""

    def __str__(self) -> str:
        """Return the name that messages use."""
        return self.kafka_bootstrap_servers


class KafkaConnectionIfGiven(KafkaSecurity):
    """Connection of commands that can work without Kafka."""

    kafka_bootstrap_servers: Annotated[BootstrapServers | None, _ADDRESSES] = None
    """Addresses of any of Kafka's brokers."""

    def require_addresses(self, otherwise: str = "") -> KafkaConnection:
        """Require the addresses and return the connection. Raises ``SettingError``; ``otherwise`` names another way."""
        if self.kafka_bootstrap_servers is None:
            ways = f", set {KAFKA}, or {otherwise}" if otherwise else f" or set {KAFKA}"
            raise SettingError(f"no Kafka: give --kafka HOST:PORT{ways}")
        return read(KafkaConnection, **{name: getattr(self, name) for name in type(self).model_fields})


def build_kafka_connection(bootstrap_servers: str) -> KafkaConnection:
    """Build a connection without TLS and SASL, whatever the environment says."""
    fields = {name: field.default for name, field in KafkaSecurity.model_fields.items()}
    return KafkaConnection.model_validate(fields | {"kafka_bootstrap_servers": bootstrap_servers})
