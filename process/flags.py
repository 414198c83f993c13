"""Flags of a command from a model of settings: every field is a flag and an environment variable, checked alike.

The flag is called like the field, unless a ``Flag`` in the field's annotation gives other names; its help is the text
below the field. A flag comes before the variable, the variable before the default.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from process.cli import one_line_for
from process.errors import SettingError
from process.settings import EnvironmentSettings, read


@dataclass(frozen=True, slots=True)
class Flag:
    """How a field is written on the command line, where its own name is not enough."""

    names: tuple[str, ...] = ()
    """With dashes; messages use the first one."""
    metavar: str = "TEXT"
    text: Callable[[Any], str] = str
    """How the default is shown."""


def takes_settings(model: type[EnvironmentSettings]) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """A decorator for a command whose one parameter is an instance of ``model``.

    A wrong value is one line that begins with the flag, or with the variable where the value came from there.
    """

    def decorate(command: Callable[[Any], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            # Only what was given: an error in another field names its variable, which is where that value came from.
            flags = {name: flag_of(model, name) for name, value in given.items() if value is not None}
            with one_line_for(SettingError):
                settings = read(model, flags, **given)
            command(settings)

        parameters = [_parameter(name, field) for name, field in model.model_fields.items()]
        # typer reads parameters from the signature, and their types from the annotations: both have to be replaced.
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def flag_of(model: type[EnvironmentSettings], name: str) -> str:
    """The field's flag, as messages name it."""
    return next(iter(_declared(model.model_fields[name]).names), f"--{name.replace('_', '-')}")


def shown(settings: EnvironmentSettings) -> dict[str, str]:
    """Every setting that has a value, by its flag without dashes, as the command line writes it."""
    model = type(settings)
    given = ((name, getattr(settings, name)) for name in model.model_fields)
    return {flag_of(model, name).lstrip("-"): _text(model, name, value) for name, value in given if value is not None}


def _text(model: type[EnvironmentSettings], name: str, value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else _declared(model.model_fields[name]).text(value)


def _declared(field: FieldInfo) -> Flag:
    return next((found for found in field.metadata if isinstance(found, Flag)), Flag())


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    flag, is_switch = _declared(field), field.annotation is bool
    option = typer.Option(
        *_names(flag, is_switch=is_switch),
        help=_help(field),
        metavar=None if is_switch else flag.metavar,
    )
    # The model reads the text, and knows the default: None means that the flag is not given.
    kind: Any = bool | None if is_switch else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _names(flag: Flag, *, is_switch: bool) -> tuple[str, ...]:
    # Of a name that is given too: an argument must be able to switch off what the environment switches on.
    if not is_switch or not flag.names:
        return flag.names
    *others, last = flag.names
    return (*others, f"{last}/--no-{last.lstrip('-')}")


def _help(field: FieldInfo) -> str:
    about = " ".join((field.description or "").split())
    if field.annotation is bool:
        return f"{about}  [default: on]" if field.default else about
    if field.default in (None, "", ()):
        return about
    return f"{about}  [default: {_declared(field).text(field.default)}]"
