"""Targets of messages: only what the operator's file names can be sent to."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from runtime.errors import SettingError
from runtime.log_once import LoggedProblem
from runtime.settings import addresses
from runtime.settings.secret_files import FileSecret, read_version

logger = logging.getLogger(__name__)


def _open_secret(path: Path) -> FileSecret:
    try:
        return FileSecret(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _check_url(text: str) -> str:
    return addresses.parse_url(text, "https://hooks.example/services/T0/B0/x")


SecretFile = Annotated[Path, AfterValidator(_open_secret)]


class _Target(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    language: Literal["en", "zh"] = "en"
    namespaces: tuple[str, ...] = ()
    """Namespaces whose workloads may name the target; empty for all."""


class WebhookTarget(_Target):
    """Chat with Slack's form of webhooks."""

    kind: Literal["webhook"]
    url_file: SecretFile
    """File with the address, because everybody with the address may post."""


class CloudEventsTarget(_Target):
    """Receiver of CloudEvents over HTTP, in structured mode."""

    kind: Literal["cloudevents"]
    url: Annotated[str, AfterValidator(_check_url)]
    token_file: SecretFile | None = None
    """File of a bearer token."""


class MailTarget(_Target):
    """People with mail."""

    kind: Literal["mail"]
    smtp: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}$")]
    """Host and port of the server."""
    sender: str = Field(alias="from")
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    security: Literal["starttls", "tls", "none"] = "starttls"
    ca_file: Path | None = None
    username: str = ""
    password_file: SecretFile | None = None


Target = WebhookTarget | CloudEventsTarget | MailTarget
_TARGETS = TypeAdapter(dict[str, Annotated[Target, Field(discriminator="kind")]])


class TargetsFile:
    """Targets of the operator's file, read again when it changes. While it has a mistake, those of before are used."""

    def __init__(self, file: Path) -> None:
        """Read the file. Raises ``SettingError``."""
        self._file, self._version, self._targets = file, read_version(file), read_targets(file)
        self._mistake = LoggedProblem(partial(logger.error, "the targets of before are used: %s"))

    def get(self) -> Mapping[str, Target]:
        """Return the present targets by name."""
        if (version := read_version(self._file)) != self._version or self._mistake.text:
            try:
                self._targets, self._version = read_targets(self._file), version
            except SettingError as error:
                self._mistake.note(str(error))
            else:
                self._mistake.note("")
        return self._targets


def read_targets(file: Path) -> Mapping[str, Target]:
    """Read the targets by name. Raises ``SettingError``."""
    try:
        return _TARGETS.validate_python(yaml.safe_load(file.read_text("utf-8")) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingError(f"--targets: {file}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingError(f"--targets: {file}: {where}: {first['msg'].removeprefix('Value error, ')}") from None
