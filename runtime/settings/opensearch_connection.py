"""Connection settings of OpenSearch: URLs, TLS, credentials. ``runtime.opensearch.client`` makes a client of them."""

from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from runtime.settings import addresses
from runtime.settings.present_context import PresentContext
from runtime.settings.settings import Duration, EnvironmentSettings, Flag
from runtime.settings.variables import derive_variable

_TLS_FIELDS: Final = ("opensearch_ca_file", "opensearch_cert_file", "opensearch_key_file")


def _parse_urls(text: str) -> str:
    """Parse ``http://a:9200,http://b:9200`` without spaces. Raises ``ValueError``, which shows no password."""
    urls = [addresses.parse_url(part.strip()) for part in text.split(",")]
    # A client speaks the same protocol to all of them.
    if len({urlsplit(url).scheme for url in urls}) > 1:
        raise ValueError("http:// and https:// mixed: write all URLs with one of them")
    return ",".join(urls)


class OpenSearchConnection(EnvironmentSettings):
    """Connection to OpenSearch. Its fields are checked together, without a connection."""

    opensearch_url: Annotated[str, AfterValidator(_parse_urls), Flag(metavar="URL,…")]
    """Base URL of OpenSearch, of one or several nodes; a path is put before every request's."""
    opensearch_username: str | None = None
    """For HTTP's basic authentication."""
    opensearch_password: SecretStr | None = None
    """For HTTP's basic authentication."""
    opensearch_ca_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The authorities that may have signed OpenSearch's certificate, in PEM form; default: the system's."""
    opensearch_cert_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """Our certificate, in PEM form, where OpenSearch knows us by it."""
    opensearch_key_file: Annotated[Path | None, Flag(metavar="FILE")] = None
    """The private key of our certificate."""
    opensearch_aws_region: str | None = None
    """Sign requests (AWS Signature Version 4) for this region, by the credentials that AWS's own tools would find."""
    opensearch_aws_service: Annotated[Literal["es", "aoss"], Flag(metavar="es|aoss")] = "es"
    """Service that requests are signed for: a domain (es), or OpenSearch Serverless (aoss)."""
    opensearch_timeout: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(minutes=5))] = timedelta(seconds=30)
    """Longest time of one request to OpenSearch; of the API, of all the requests for one answer together."""

    @property
    def urls(self) -> list[str]:
        return self.opensearch_url.split(",")

    @cached_property
    def opensearch_ssl_context(self) -> PresentContext | None:
        """TLS context of all clients; None without TLS."""
        if not self.opensearch_url.startswith("https://"):
            return None
        return PresentContext(
            "OpenSearch", self.opensearch_ca_file, self.opensearch_cert_file, self.opensearch_key_file
        )

    @model_validator(mode="before")
    @classmethod
    def _takes_the_user_out_of_the_url(cls, fields: Any) -> Any:
        # Messages and logs show the URL, and must not show a secret in it.
        text = fields.get("opensearch_url") if isinstance(fields, dict) else None
        if not isinstance(text, str) or "@" not in text:
            return fields
        try:
            first = urlsplit(text.split(",")[0].strip())
        except ValueError:  # the field's own check reports it
            return fields
        user_info = {"opensearch_username": first.username, "opensearch_password": first.password}
        user = {name: unquote(value) for name, value in user_info.items() if value}
        return fields | {"opensearch_url": addresses.without_user_info(text)} | (user | _without_none(fields, user))

    @model_validator(mode="after")
    def _can_say_who_we_are(self) -> Self:
        if bool(self.opensearch_username) != bool(self.opensearch_password):
            missing = "opensearch_password" if self.opensearch_username else "opensearch_username"
            raise ValueError(f"{derive_variable(missing)}: is missing, a user needs a password")
        if self.opensearch_aws_region and self.opensearch_username:
            raise ValueError(f"{derive_variable('opensearch_aws_region')}: a user is given too, leave one of them out")
        if bool(self.opensearch_cert_file) != bool(self.opensearch_key_file):
            missing = "opensearch_key_file" if self.opensearch_cert_file else "opensearch_cert_file"
            raise ValueError(f"{derive_variable(missing)}: is missing, a certificate needs its key")
        return self

    @model_validator(mode="after")
    def _can_read_its_opensearch_certificates(self) -> Self:
        if not self.opensearch_url.startswith("https://"):
            for name in _TLS_FIELDS:
                if getattr(self, name):
                    raise ValueError(f"{derive_variable(name)}: has no effect with http://, write https://")
        try:
            self.opensearch_ssl_context  # noqa: B018 - its first use reads the files
        except ValueError as error:
            raise ValueError(f"TLS to OpenSearch: {error}") from None
        return self


def _without_none(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {name: fields[name] for name in names if fields.get(name) is not None}


def build_opensearch_connection(url: str) -> OpenSearchConnection:
    """Build a connection to this URL, whatever else the environment says of OpenSearch."""
    required = ("opensearch_url",)
    fields = {name: f.default for name, f in OpenSearchConnection.model_fields.items() if name not in required}
    return OpenSearchConnection.model_validate(fields | {"opensearch_url": url})
