"""The wheel, installed where nothing else is: one command, one name for Python, and extras that bring enough."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.builders.hami_lines import write_failure, write_start
from tests.support.wheels import ROOT, Installed, install_wheel, link_requirements, parse_answer

SERVICES = ("scheduler", "pipeline", "sniffer", "api", "embedded", "mcp")
# Renders the help of every command, and prints the command lines.
EVERY_HELP = """
import json, schedulerlog, sys
sys.argv = ["schedulerlog"]
try:
    schedulerlog.main()
except SystemExit:
    pass
from typer.main import get_command
from typer.testing import CliRunner
from cli.command import app
from runtime.cli.lazy_commands import load
shown = []
def show(group, *words):
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0 and "Usage" in done.output, (words, done.output, done.exception)
    shown.append(" ".join(words))
    context = group.make_context("schedulerlog", [], resilient_parsing=True)
    for name in getattr(group, "commands", ()):
        show(group.resolve_command(context, [name])[1], *words, name)
show(get_command(app))
print(json.dumps(shown), file=sys.stderr)
"""
# Imports every module of a package of the wheel.
EVERY_MODULE = """
import pkgutil, sys
from importlib import import_module
from pathlib import Path
import schedulerlog
folder = Path(schedulerlog.__file__).parent / "packages"
sys.path.insert(0, str(folder))
package = sys.argv[1].replace("/", ".")
for module in pkgutil.walk_packages([str(folder / sys.argv[1])], f"{package}."):
    import_module(module.name)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with what it requires without extras."""
    wheel = install_wheel(tmp_path_factory.mktemp("wheel"))
    link_requirements(wheel, (), wheel.site_packages)
    return wheel


def test_the_wheel_brings_one_name_into_an_environment(installed: Installed) -> None:
    assert installed.added == {"schedulerlog", "schedulerlog-0.1.0.dist-info"}


def test_the_command_names_its_version(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("schedulerlog", "--version", cwd=tmp_path).stdout == "schedulerlog 0.1.0\n"
    assert installed.run("python", "-m", "schedulerlog", "--version", cwd=tmp_path).stdout == "schedulerlog 0.1.0\n"


def test_the_help_of_every_command_is_shown_where_all_extras_are(installed: Installed, tmp_path: Path) -> None:
    link_requirements(installed, ["all"], extras := _make_folder(tmp_path, "extras"))
    done = installed.run("python", "-c", EVERY_HELP, also=extras, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    commands = set(json.loads(done.stderr.splitlines()[-1]))
    assert {
        "scheduler serve", "scheduler simulate", "pipeline worker", "pipeline dead-letters list", "ingest hami-log",
        "api serve", "embedded kubernetes up", "demo",
    } <= commands  # fmt: skip


def test_a_log_is_explained_without_extras(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "hami.log").write_bytes(b"\n".join([write_start(), write_failure(7)]) + b"\n")
    words = ("explain", "hami.log", "trainer", "-o", "json", "--full")
    answer = json.loads(installed.run("schedulerlog", *words, cwd=tmp_path).stdout)
    assert answer["filter"]["summary"] == "no available node, 7 nodes do not meet"


def test_the_page_of_a_log_is_written_without_extras(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "hami.log").write_bytes(b"\n".join([write_start(), write_failure(7)]) + b"\n")
    done = installed.run("schedulerlog", "explain", "hami.log", "--html", "why.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trainer" in (tmp_path / "why.html").read_text("utf-8")


@pytest.mark.parametrize("program", [["schedulerlog"], ["kubectl-schedulerlog"]])
def test_pods_of_a_log_are_explained_without_extras(installed: Installed, tmp_path: Path, program: list[str]) -> None:
    (tmp_path / "hami.log").write_bytes(b"\n".join([write_start(), write_failure(7)]) + b"\n")
    done = installed.run(*program, "explain", "hami.log", cwd=tmp_path)
    assert done.stdout.startswith("1 pod in hami.log: 0 placed, 1 not."), done.stderr


def test_a_decision_is_simulated_without_extras(installed: Installed, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    files = ("--cluster", "examples/cluster.yaml", "--pod", "examples/pods/1-gpu-pod.yaml")
    answer = parse_answer(installed.run("schedulerlog", "scheduler", "simulate", *files, cwd=tmp_path))
    expected = json.loads((ROOT / "examples" / "expected" / "1-gpu-pod.json").read_text("utf-8"))
    assert isinstance(answer, dict)
    assert answer["filter"] == expected["filter"]


@pytest.mark.parametrize(("command", "extra"), [("api serve", "api"), ("ingest raw-logs", "ingest")])
def test_a_command_names_the_extra_that_it_lacks(
    installed: Installed, tmp_path: Path, command: str, extra: str
) -> None:
    done = installed.run("schedulerlog", *command.split(), "--kafka", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode != 0
    [line] = done.stderr.splitlines()
    assert line.startswith(f"schedulerlog {extra} needs the package ")
    assert line.endswith(f": pip install 'schedulerlog[{extra}]'")


@pytest.mark.parametrize("extra", SERVICES)
def test_an_extra_brings_all_that_its_modules_import(installed: Installed, tmp_path: Path, extra: str) -> None:
    link_requirements(installed, [extra], folder := _make_folder(tmp_path, extra))
    package = {"sniffer": "ingest", "mcp": "cli/assistant", "embedded": "dev/embedded"}.get(extra, extra)
    done = installed.run("python", "-c", EVERY_MODULE, package, also=folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def _make_folder(above: Path, name: str) -> Path:
    (above / name).mkdir()
    return above / name


def test_every_package_of_the_repository_is_in_the_wheel(installed: Installed) -> None:
    here = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "schedulerlog"}
    below = {path.parent.name for path in (installed.site_packages / "schedulerlog" / "packages").glob("*/__init__.py")}
    assert below == here


# Runs the first program of docs/events.md on a golden record.
CONSUMER = """
import json, sys
from pathlib import Path
page, record = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
class message:
    value = record.with_suffix(".json").read_bytes()
    headers = json.loads(record.with_suffix(".headers.json").read_bytes())
    headers = [(key, text.encode()) for key, text in headers.items()]
exec(page.split("```python")[1].split("```")[0])
print(sorted({name.split(".")[0] for name in sys.modules} & {"schemas", "engine", "runtime", "api"}))
"""


def test_a_consumer_imports_only_the_models_of_the_wheel(installed: Installed, tmp_path: Path) -> None:
    record = ROOT / "tests/contract/golden/io.schedulerlog.nodes.judged.v1/001"
    done = installed.run("python", "-c", CONSUMER, str(ROOT / "docs/events.md"), str(record), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *lines, packages = done.stdout.splitlines()
    assert [line.split()[-2:] for line in lines] == [
        ["node1", "refused"], ["node2", "refused"], ["node3", "fits"], ["node4", "fits"], ["node5", "picked"],
    ]  # fmt: skip
    assert packages == "[]"
