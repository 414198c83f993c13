"""All settings of the commands of a command line, for docs/settings.md and for the list of variables."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command

from runtime.settings.flags import format_default, get_declaration, list_flags
from runtime.settings.secret_files import SUFFIX, is_secret
from runtime.settings.settings import EnvironmentSettings, describe_field, get_variable


class Setting(NamedTuple):
    variable: str
    flags: tuple[str, ...]
    form: str
    """Form of a value: ``DURATION``, ``HOST:PORT``."""
    default: str
    description: str
    command: str
    """Command as users type it: ``pipeline worker``."""


def list_settings(app: Any, name: str = "") -> Iterator[Setting]:
    """List every setting of every command of a typer application."""
    yield from list_command_settings(get_command(app), name)


def list_command_settings(command: Any, called: str) -> Iterator[Setting]:
    """List every setting of a command, and of the commands below it."""
    for model in getattr(command.callback, "settings_models", ()):
        yield from _list_model_settings(model, called)
    for parameter in command.params:
        # Parameters that are no field of a model.
        if parameter.envvar:
            default = "" if parameter.default is None else str(parameter.default).lower()
            form = "true|false" if parameter.is_flag else str(parameter.metavar)
            description = str(parameter.help)
            yield Setting(str(parameter.envvar), (parameter.opts[0],), form, default, description, called)
    if names := getattr(command, "commands", {}):
        # Not the commands of that list: some of them are stand-ins for commands that are imported on a call.
        context = command.make_context(called, [], resilient_parsing=True)
        for name in names:
            yield from list_command_settings(command.resolve_command(context, [name])[1], f"{called} {name}".strip())


def _list_model_settings(model: type[EnvironmentSettings], called: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        is_switch, flags = field.annotation is bool, list_flags(model, name)
        variable, text = get_variable(model, name), describe_field(model, name)
        default = format_default(field).removeprefix("  [default: ").removeprefix("  [").removesuffix("]")
        if is_secret(field):
            yield Setting(variable, (), "TEXT", default, text, called)
            yield Setting(variable + SUFFIX, flags, "FILE", default, f"A file that holds it. {text}", called)
        else:
            form = "true|false" if is_switch else get_declaration(field).metavar
            yield Setting(variable, flags, form, str(field.default).lower() if is_switch else default, text, called)
