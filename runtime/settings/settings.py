"""Settings from the environment: ``SCHEDULERLOG_`` and a field's name in capitals is the variable of the field; a
secret may also come from the file that ``…_FILE`` names. ``runtime.settings.flags`` makes flags of the same fields.

No name of a field ends with ``…_port``, ``…_service_host`` or ``…_service_port``: Kubernetes puts variables of such
names into every pod, for each Service of the namespace (``SCHEDULERLOG_API_PORT=tcp://10.0.0.11:9090``).
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from runtime import durations
from runtime.errors import SettingError
from runtime.settings import addresses
from runtime.settings.addresses import HostPort
from runtime.settings.names import check_cluster_name, parse_label_names
from runtime.settings.secret_files import SUFFIX, is_secret, read_secret
from runtime.settings.variables import PREFIX
from schemas.described import list_field_texts

_SIZE_FORM: Final = re.compile(r"(\d{1,15})([KMGT]i|[kMGT])?", re.ASCII)
_SIZE_UNITS: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1000 ** (power + 1) for power, unit in enumerate("kMGT")},
    **{f"{unit}i": 1024 ** (power + 1) for power, unit in enumerate("KMGT")},
}


def parse_size(text: str) -> int:
    """Parse a size. Raises ``ValueError`` that says what to write."""
    match = _SIZE_FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size, write one such as 64Mi or 4Gi")
    return int(match[1]) * _SIZE_UNITS[match[2] or ""]


def format_size(size: int) -> str:
    """Format the size in the largest unit of which it is an integer multiple: `4Gi`, `1500Ki`, `1000`."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if size and size % _SIZE_UNITS[unit] == 0:
            return f"{size // _SIZE_UNITS[unit]}{unit}"
    return str(size)


S = TypeVar("S", bound="EnvironmentSettings")
NO_FLAGS: Final[Mapping[str, str]] = MappingProxyType({})


def _read_label_names(value: object) -> object:
    return parse_label_names(value) if isinstance(value, str) else value


def _read_listen_address(value: object) -> object:
    return addresses.parse_listen_address(value) if isinstance(value, str) else value


def _read_duration(value: object) -> object:
    return durations.read(value) if isinstance(value, str) else value


def _read_size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Flag:
    """Form of a field on the command line, if its name is not enough."""

    names: tuple[str, ...] = ()
    """Names of the flag with their dashes; messages use the first one."""
    metavar: str = "TEXT"
    text: Callable[[Any], str] = str
    """Function that formats a value for display."""


BootstrapServers = Annotated[str, AfterValidator(addresses.parse_bootstrap_servers)]
"""``HOST:PORT[,HOST:PORT…]`` of any of Kafka's brokers."""
Duration = Annotated[timedelta, BeforeValidator(_read_duration), Flag(metavar="DURATION", text=durations.format_go)]
"""``10s``, ``5m``, ``1h30m``; a bare number means seconds."""
Size = Annotated[int, BeforeValidator(_read_size), Flag(metavar="SIZE", text=format_size)]
"""``64Mi``, ``4Gi``; a bare number means bytes."""
ListenAddress = Annotated[HostPort, BeforeValidator(_read_listen_address)]
"""``HOST:PORT`` to listen on, or a port of loopback."""
ClusterName = Annotated[str, AfterValidator(check_cluster_name)]
"""Name of the Kubernetes cluster, as in ``schemas.events.ClusterName``."""
LabelNames = Annotated[tuple[str, ...], BeforeValidator(_read_label_names)]
"""Names of labels between commas."""
ListenAddressIfGiven = Annotated[HostPort | None, BeforeValidator(_read_listen_address)]
Url = Annotated[str, AfterValidator(addresses.parse_url)]
"""A base URL; a user and password may stand in it."""


class EnvironmentSettings(BaseModel):
    """Base of every model of settings; the text below a field describes it.

    Not pydantic-settings: ``_from_environment`` replaces the part that we would use, and its import takes a sixth of
    the time in which a command that reads a file starts.
    """

    model_config = ConfigDict(
        frozen=True,
        # The value may be a URL with a password.
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )
    variable_prefix: ClassVar[str] = PREFIX


def read(model: type[S], flags: Mapping[str, str] = NO_FLAGS, /, **options: Any) -> S:
    """Read the settings; values of ``options`` that are not None come before the environment's.

    Raises ``SettingError``, which names the field's flag where ``flags`` has one, else its variable.
    """
    try:
        values = {name: value for name, value in options.items() if value is not None}
        return model(**(dict(_from_environment(model, values)) | values))
    except ValidationError as error:
        # Without the cause: its text would show the values.
        raise SettingError(_describe_problem(model, error, flags)) from None


def _from_environment(model: type[EnvironmentSettings], options: Collection[str]) -> Iterator[tuple[str, object]]:
    """Yield the fields without an option that have a variable, or a file that a variable names."""
    for name, field in model.model_fields.items():
        if name in options:
            continue
        variable = get_variable(model, name)
        # A manifest or a compose file that passes an empty variable on means the default.
        value = os.environ.get(variable)
        path = os.environ.get(variable + SUFFIX) if is_secret(field) else None
        if value and path:
            raise SettingError(f"{variable + SUFFIX}: {variable} is set too, leave one of them out")
        if value:
            yield name, value
        elif path:
            yield name, read_secret(Path(path), variable + SUFFIX)


def _describe_problem(model: type[EnvironmentSettings], error: ValidationError, flags: Mapping[str, str]) -> str:
    """Describe the first wrong setting in one line, without its value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    cause = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # of several fields together: the text names them
        return cause
    name = _get_field_name(model, str(first["loc"][0]))
    if first["type"] == "missing":
        return f"{get_variable(model, name)} is not set: {describe_field(model, name)}"
    return f"{flags.get(name) or get_variable(model, name)}: {cause}"


def get_variable(model: type[EnvironmentSettings], name: str) -> str:
    """Get the environment variable of a field."""
    alias = model.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else f"{model.variable_prefix}{name.upper()}"


def _get_field_name(model: type[EnvironmentSettings], location: str) -> str:
    """Get the name of the field that an error names, maybe by its alias."""
    aliases = {field.validation_alias: name for name, field in model.model_fields.items()}
    return aliases.get(location, location)


def describe_field(model: type[EnvironmentSettings], name: str) -> str:
    """Describe a field in one line."""
    texts = (list_field_texts(above) for above in model.__mro__ if issubclass(above, EnvironmentSettings))
    return " ".join(next((field_texts[name] for field_texts in texts if name in field_texts), "").split())


def _to_lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class LogSettings(EnvironmentSettings):
    """Settings of every command that logs."""

    log_format: Annotated[Literal["text", "json"], BeforeValidator(_to_lower), Flag(metavar="text|json")] = "text"
    """Format of log lines: for people, or as one JSON object a line."""
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(_to_lower),
        Flag(metavar="debug|info|warning|error"),
    ] = "info"
    """Lowest level of the log lines to write."""


class ServiceSettings(LogSettings):
    """Settings of every command that runs until it is stopped."""

    metrics_address: Annotated[ListenAddressIfGiven, Flag(metavar="HOST:PORT")] = None
    """Serve /metrics, /healthz and /readyz there; a port alone is one of 127.0.0.1."""
