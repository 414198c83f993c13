"""Flags of a command from models of settings: every field is a flag and an environment variable, checked alike. Options
that are no settings, such as which file to read, are a command's own parameters, or fields of a dataclass.

The flag is called like the field, unless a ``Flag`` in the field's annotation gives other names; its help is the text
below the field. A flag comes before the variable, the variable before the default. A secret has no flag, because
everyone on the machine can read a command line: its flag names a file that holds it.
"""

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from runtime.cli.cli import one_line_for
from runtime.errors import SettingError
from runtime.settings import unknown_variables
from runtime.settings.secret_files import SUFFIX, is_secret, read_secret
from runtime.settings.settings import EnvironmentSettings, Flag, about, read, variable_of

__all__ = ["Flag", "declared", "default_text", "flag_of", "flags_of", "shown", "takes"]

Model = type[EnvironmentSettings]


def takes(
    *kinds: type[Any], unless: Callable[[Mapping[str, Any]], bool] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose first parameters are an instance of each of ``kinds``; its other parameters stay options
    of their own.

    A kind is a model of settings, or a dataclass whose fields are declared as parameters of a command of typer would
    be. A wrong setting is one line that begins with the flag, or with the variable where the value came from there.
    Where ``unless``, asked with what the flags give, answers yes, no setting is read and the command does not run.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[len(kinds) :]

        @functools.wraps(command)
        def call(**given: Any) -> None:
            with one_line_for(SettingError):
                if unless and unless(given):
                    return
                first = [_made(kind, given) for kind in kinds]
            if line := unknown_variables.warning(os.environ):
                typer.echo(line, err=True)
            command(*first, **{parameter.name: given[parameter.name] for parameter in own})

        parameters = [*(parameter for kind in kinds for parameter in _parameters(kind)), *own]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        # typer reads parameters from the signature, and their types from the annotations: both have to be replaced.
        call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
        call.settings_models = [kind for kind in kinds if _is_model(kind)]  # type: ignore[attr-defined]
        return call

    return decorate


def flag_of(model: Model, name: str) -> str:
    """Return the field's flag, as messages name it."""
    return next(iter(_names(model.model_fields[name])), f"--{_dashed(model, name)}")


def flags_of(model: Model, name: str) -> tuple[str, ...]:
    """List all names of the field's flag."""
    return _names(model.model_fields[name]) or (flag_of(model, name),)


def declared(field: FieldInfo) -> Flag:
    """Return the declaration of the field on the command line."""
    # The last one: a field may add to what its type says.
    return next((found for found in reversed(field.metadata) if isinstance(found, Flag)), Flag())


def shown(settings: EnvironmentSettings) -> dict[str, str]:
    """List every setting that has a value and is no secret, by its flag without dashes, as the command line writes
    it."""
    model = type(settings)
    given = {name: getattr(settings, name) for name, field in model.model_fields.items() if not is_secret(field)}
    return {flag_of(model, name).lstrip("-"): _text(model, name, v) for name, v in given.items() if v is not None}


def _is_model(kind: type[Any]) -> bool:
    return issubclass(kind, EnvironmentSettings)


def _made(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Create an instance from the values of the command line. Raises ``SettingError``."""
    if _is_model(kind):
        return _read(kind, given)
    return kind(**{field.name: given[field.name] for field in dataclasses.fields(kind)})


def _read(model: Model, given: Mapping[str, Any]) -> EnvironmentSettings:
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value = given[name]
        if value is not None:
            values[name] = read_secret(Path(value), flag_of(model, name)) if is_secret(field) else value
    # Only what was given: an error in another field names its variable, which is where that value came from.
    return read(model, {name: flag_of(model, name) for name in values}, **values)


def _parameters(kind: type[Any]) -> Iterator[inspect.Parameter]:
    if _is_model(kind):
        yield from (_parameter(kind, name, field) for name, field in kind.model_fields.items())
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


def _text(model: Model, name: str, value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else declared(model.model_fields[name]).text(value)


def _dashed(model: Model, name: str) -> str:
    return name.replace("_", "-") + ("-file" if is_secret(model.model_fields[name]) else "")


def _names(field: FieldInfo) -> tuple[str, ...]:
    return declared(field).names


def _parameter(model: Model, name: str, field: FieldInfo) -> inspect.Parameter:
    is_switch, secret = field.annotation is bool, is_secret(field)
    option = typer.Option(
        *_options(field, f"--{_dashed(model, name)}", is_switch=is_switch),
        help=_help(model, name, field),
        metavar=None if is_switch else "FILE" if secret else declared(field).metavar,
    )
    # The model reads the text, and knows the default: None means that the flag is not given.
    kind: Any = bool | None if is_switch else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _options(field: FieldInfo, flag: str, *, is_switch: bool) -> tuple[str, ...]:
    # Of a switch that has a name too: an argument must be able to switch off what the environment switches on.
    *others, last = _names(field) or (flag,)
    return (*others, f"{last}/--no-{last.lstrip('-')}" if is_switch else last)


def _help(model: Model, name: str, field: FieldInfo) -> str:
    variable = variable_of(model, name) + (SUFFIX if is_secret(field) else "")
    # Written here and not by typer, which would read the variable itself: the model does.
    return f"{about(model, name)}  [env var: {variable}]{default_text(field)}"


def default_text(field: FieldInfo) -> str:
    """Format the default for the help, in brackets; empty where there is none."""
    default = field.default
    if field.annotation is bool:
        return "  [default: on]" if default else ""
    if default is PydanticUndefined and field.default_factory is None:
        return "  [required]"
    if default in (None, "", (), PydanticUndefined):
        return ""
    return f"  [default: {declared(field).text(default)}]"
