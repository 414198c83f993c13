"""All settings of a command line, found in its commands: for docs/settings.md, and for the names that are known."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command

from runtime.settings.flags import declared, default_text, flags_of
from runtime.settings.secret_files import SUFFIX, is_secret
from runtime.settings.settings import EnvironmentSettings, about, variable_of


class Setting(NamedTuple):
    variable: str
    flags: tuple[str, ...]
    form: str
    """Form of a value: ``DURATION``, ``HOST:PORT``."""
    default: str
    about: str
    command: str
    """Command as users call it: ``pipeline worker``."""


def settings_of(app: Any, name: str = "") -> Iterator[Setting]:
    """Yield every setting of every command of a typer application."""
    yield from settings_of_command(get_command(app), name)


def settings_of_command(command: Any, called: str) -> Iterator[Setting]:
    """Yield every setting of a command, and of the commands below it."""
    for model in getattr(command.callback, "settings_models", ()):
        yield from _of_model(model, called)
    for parameter in command.params:
        # Those that are no field of a model.
        if parameter.envvar:
            default = "" if parameter.default is None else str(parameter.default).lower()
            form = "true|false" if parameter.is_flag else str(parameter.metavar)
            about = str(parameter.help)
            yield Setting(str(parameter.envvar), (parameter.opts[0],), form, default, about, called)
    if names := getattr(command, "commands", {}):
        # Not the commands in that list: some of them stand for others, which are imported when they are called.
        context = command.make_context(called, [], resilient_parsing=True)
        for name in names:
            yield from settings_of_command(command.resolve_command(context, [name])[1], f"{called} {name}".strip())


def _of_model(model: type[EnvironmentSettings], called: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        is_switch, flags = field.annotation is bool, flags_of(model, name)
        variable, text = variable_of(model, name), about(model, name)
        default = default_text(field).removeprefix("  [default: ").removeprefix("  [").removesuffix("]")
        if is_secret(field):
            yield Setting(variable, (), "TEXT", default, text, called)
            yield Setting(variable + SUFFIX, flags, "FILE", default, f"A file that holds it. {text}", called)
        else:
            form = "true|false" if is_switch else declared(field).metavar
            yield Setting(variable, flags, form, str(field.default).lower() if is_switch else default, text, called)
