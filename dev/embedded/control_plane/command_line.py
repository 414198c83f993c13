"""``python -m dev.embedded kubernetes``: a real Kubernetes control plane on this machine, without Docker."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from dev.embedded.control_plane import folder as folders
from dev.embedded.control_plane.build import KUBERNETES_VERSION, ensure_installed
from dev.embedded.control_plane.cluster import CORE
from dev.embedded.control_plane.state import ProgramName
from dev.embedded.control_plane.steps import create_steps
from dev.embedded.errors import UnusableSettingError
from dev.embedded.status import Output, messages, say, say_started, say_stopped, show

app = typer.Typer(
    help=f"A real Kubernetes {KUBERNETES_VERSION} control plane on this machine, without Docker.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Option("--dir", help="Folder of data, logs and state.", resolve_path=True)]
DEFAULT_FOLDER = Path(".run/kubernetes")


@app.command("install")
def install_command() -> None:
    """Build the programs from Go modules into the user's cache; takes minutes the first time only."""
    say(f"Kubernetes {KUBERNETES_VERSION} in {ensure_installed(create_steps(messages))}")


@app.command()
def up(
    folder: Folder = DEFAULT_FOLDER,
    scheduler_config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; by default kube-scheduler's own.", exists=True)
    ] = None,
    scheduler: Annotated[bool, typer.Option(help="Also start kube-scheduler.")] = True,
    # Without kwok nothing runs a bound pod, and a deleted one stays until its grace period is forced to 0.
    kwok: Annotated[bool, typer.Option(help="Also start kwok, which plays the kubelets of all nodes.")] = True,
) -> None:
    """Start the programs that do not run yet, wait until they are ready for work, and leave them running."""
    names: list[ProgramName] = list(CORE)
    if scheduler:
        names.append("kube-scheduler")
    if kwok:
        names.append("kwok")
    folders.start(folder, names, _read_configuration(scheduler_config), create_steps(messages))
    say_started(folders.list_statuses(folder))


@app.command()
def down(folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop all programs of this folder; keep objects, credentials and logs."""
    say_stopped(folders.stop(folder), folder)


@app.command()
def status(folder: Folder = DEFAULT_FOLDER, output: Output = "text") -> None:
    """Print for each program: up or dead, process id, port, memory. Exit status 1 if one is dead or none started."""
    show(folders.list_statuses(folder), folder, output)


@app.command()
def env(folder: Folder = DEFAULT_FOLDER) -> None:
    """Print the environment variables that kubectl needs, for ``eval "$(python -m dev.embedded kubernetes env)"``."""
    for name, value in folders.build_environment(folder).items():
        # Double quotes, so that the shell replaces $PATH with its own.
        typer.echo(f'export {name}="{value}"')


def _read_configuration(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        document = yaml.safe_load(file.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise UnusableSettingError(f"{file}: cannot be read as YAML ({error})") from error
    if not isinstance(document, dict):
        raise UnusableSettingError(f"{file}: does not contain a KubeSchedulerConfiguration")
    return document
