"""``python -m embedded kubernetes``: a real Kubernetes control plane on this machine, without Docker."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from embedded.control_plane import folder as folders
from embedded.control_plane.build import KUBERNETES_VERSION, installed
from embedded.control_plane.cluster import CORE
from embedded.control_plane.state import ProgramName
from embedded.control_plane.steps import steps_on
from embedded.errors import SettingError

app = typer.Typer(
    help=f"A real Kubernetes {KUBERNETES_VERSION} control plane on this machine, without Docker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
messages = Console(stderr=True)

Folder = Annotated[Path, typer.Option("--dir", help="Where data, logs and state are kept.", resolve_path=True)]
DEFAULT_FOLDER = Path(".run/kubernetes")


@app.command("install")
def install_command() -> None:
    """Build the programs from Go modules into the user's cache: minutes the first time, nothing after."""
    _say(f"Kubernetes {KUBERNETES_VERSION} in {installed(steps_on(messages))}")


@app.command()
def up(
    folder: Folder = DEFAULT_FOLDER,
    scheduler_config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; by default kube-scheduler's own.", exists=True)
    ] = None,
    scheduler: Annotated[bool, typer.Option(help="Also start kube-scheduler.")] = True,
    kwok: Annotated[bool, typer.Option(help="Also start kwok, which plays the kubelets of all nodes.")] = True,
) -> None:
    """Start what does not run yet, wait until it is really ready, and leave it running."""
    names: list[ProgramName] = list(CORE)
    if scheduler:
        names.append("kube-scheduler")
    if kwok:
        names.append("kwok")
    folders.up(folder, names, _configuration(scheduler_config), steps_on(messages))
    for program in folders.status(folder):
        _say(_line(program))


@app.command()
def down(folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop everything of this folder; objects, credentials and logs stay."""
    stopped = folders.down(folder)
    _say(f"stopped {', '.join(stopped)}" if stopped else f"nothing was running in {folder}")


@app.command()
def status(folder: Folder = DEFAULT_FOLDER) -> None:
    """Say per program: up or dead, process id, port, memory. Exit status 1 when one is dead or nothing was started."""
    programs = folders.status(folder)
    for program in programs:
        typer.echo(_line(program))
    if not programs:
        _say(f"nothing was started in {folder}")
    if not programs or not all(program.is_up for program in programs):
        raise typer.Exit(1)


@app.command()
def env(folder: Folder = DEFAULT_FOLDER) -> None:
    """Print what kubectl needs, for ``eval "$(python -m embedded kubernetes env)"``."""
    for name, value in folders.environment(folder).items():
        # Double quotes, so that the shell puts its own $PATH in.
        typer.echo(f'export {name}="{value}"')


def _configuration(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        document = yaml.safe_load(file.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise SettingError(f"{file}: cannot be read as YAML ({error})") from error
    if not isinstance(document, dict):
        raise SettingError(f"{file}: holds no KubeSchedulerConfiguration")
    return document


def _line(program: folders.ProgramStatus) -> str:
    where = f"{program.name:<24} {{state:<5}} 127.0.0.1:{program.port}"
    if program.memory_mib is None:
        return where.format(state="dead") + f"  log {program.log}"
    return where.format(state="up") + f"  pid {program.pid}  {program.memory_mib:.0f} MiB"


def _say(text: str) -> None:
    messages.print(text, highlight=False, markup=False, soft_wrap=True)
