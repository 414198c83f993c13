"""Flags of a command from models of settings: every field is a flag and an environment variable, checked alike. Options
that are no settings, such as the file to read, are further parameters of a command, or fields of a dataclass.

The flag has the name of the field, unless a ``Flag`` in the field's annotation gives other names; its help is the text
below the field. A flag comes before the variable, the variable before the default. The flag of a secret names a file
that holds it, because everyone on the machine can read a command line.
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
from runtime.settings import variables
from runtime.settings.secret_files import SUFFIX, is_secret, read_secret
from runtime.settings.settings import EnvironmentSettings, Flag, describe_field, get_variable, read

__all__ = [
    "Flag",
    "format_default",
    "get_declaration",
    "get_flag",
    "list_flags",
    "list_public_settings",
    "with_settings",
]

Model = type[EnvironmentSettings]


def with_settings(
    *kinds: type[Any], unless: Callable[[Mapping[str, Any]], bool] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose first parameters are instances of ``kinds``; its other parameters stay options.

    A kind is a model of settings, or a dataclass whose fields are declared like parameters of a typer command. A wrong
    setting ends the command with one line, which begins with the flag or the variable of the value. If ``unless`` is
    true for the values of the flags, no setting is read and the command does not run.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters_of_command = list(inspect.signature(command, eval_str=True).parameters.values())[len(kinds) :]

        @functools.wraps(command)
        def call(**options: Any) -> None:
            with one_line_for(SettingError):
                if unless and unless(options):
                    return
                first = [_create_instance(kind, options) for kind in kinds]
            if line := variables.warn_of_unknown(os.environ):
                typer.echo(line, err=True)
            command(*first, **{parameter.name: options[parameter.name] for parameter in parameters_of_command})

        parameters = [*(parameter for kind in kinds for parameter in _iterate_parameters(kind)), *parameters_of_command]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        # typer reads parameters from the signature, and their types from the annotations: both have to be replaced.
        call.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
        call.settings_models = [kind for kind in kinds if _is_model(kind)]  # type: ignore[attr-defined]
        return call

    return decorate


def get_flag(model: Model, name: str) -> str:
    """Get the field's flag, as messages name it."""
    return next(iter(_get_flag_names(model.model_fields[name])), f"--{_to_flag_name(model, name)}")


def list_flags(model: Model, name: str) -> tuple[str, ...]:
    """List all names of the field's flag."""
    return _get_flag_names(model.model_fields[name]) or (get_flag(model, name),)


def get_declaration(field: FieldInfo) -> Flag:
    """Get the declaration of the field on the command line."""
    # The last one: a field may override the declaration of its type.
    return next((declaration for declaration in reversed(field.metadata) if isinstance(declaration, Flag)), Flag())


def list_public_settings(settings: EnvironmentSettings) -> dict[str, str]:
    """List every setting that has a value and is no secret, by its flag without dashes, in the form of the command
    line.
    """
    model = type(settings)
    options = {name: getattr(settings, name) for name, field in model.model_fields.items() if not is_secret(field)}
    return {
        get_flag(model, name).lstrip("-"): _format_value(model, name, v) for name, v in options.items() if v is not None
    }


def _is_model(kind: type[Any]) -> bool:
    return issubclass(kind, EnvironmentSettings)


def _create_instance(kind: type[Any], options: Mapping[str, Any]) -> Any:
    """Create an instance from the values of the command line. Raises ``SettingError``."""
    if _is_model(kind):
        return _read(kind, options)
    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind)})


def _read(model: Model, options: Mapping[str, Any]) -> EnvironmentSettings:
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value = options[name]
        if value is not None:
            values[name] = read_secret(Path(value), get_flag(model, name)) if is_secret(field) else value
    # Only the options of the command line: an error in another field names the variable of its value.
    return read(model, {name: get_flag(model, name) for name in values}, **values)


def _iterate_parameters(kind: type[Any]) -> Iterator[inspect.Parameter]:
    if _is_model(kind):
        yield from (_build_parameter(kind, name, field) for name, field in kind.model_fields.items())
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


def _format_value(model: Model, name: str, value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else get_declaration(model.model_fields[name]).text(value)


def _to_flag_name(model: Model, name: str) -> str:
    return name.replace("_", "-") + ("-file" if is_secret(model.model_fields[name]) else "")


def _get_flag_names(field: FieldInfo) -> tuple[str, ...]:
    return get_declaration(field).names


def _build_parameter(model: Model, name: str, field: FieldInfo) -> inspect.Parameter:
    is_switch, secret = field.annotation is bool, is_secret(field)
    option = typer.Option(
        *_build_option_names(field, f"--{_to_flag_name(model, name)}", is_switch=is_switch),
        help=_write_help(model, name, field),
        metavar=None if is_switch else "FILE" if secret else get_declaration(field).metavar,
    )
    # The model parses the text and has the default: None means that the flag is not on the command line.
    kind: Any = bool | None if is_switch else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _build_option_names(field: FieldInfo, flag: str, *, is_switch: bool) -> tuple[str, ...]:
    # With the opposite for a switch: an argument must be able to switch off what the environment switches on.
    *others, last = _get_flag_names(field) or (flag,)
    return (*others, f"{last}/--no-{last.lstrip('-')}" if is_switch else last)


def _write_help(model: Model, name: str, field: FieldInfo) -> str:
    variable = get_variable(model, name) + (SUFFIX if is_secret(field) else "")
    # Not by typer, which would read the variable itself: the model reads it.
    return f"{describe_field(model, name)}  [env var: {variable}]{format_default(field)}"


def format_default(field: FieldInfo) -> str:
    """Format the default for the help, in brackets; empty without one."""
    default = field.default
    if field.annotation is bool:
        return "  [default: on]" if default else ""
    if default is PydanticUndefined and field.default_factory is None:
        return "  [required]"
    if default in (None, "", (), PydanticUndefined):
        return ""
    return f"  [default: {get_declaration(field).text(default)}]"
