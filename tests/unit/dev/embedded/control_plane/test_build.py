"""Building the control plane, with a stand-in for Go: what is built when, what is lines, and what is left behind."""

import os
import threading
from pathlib import Path

import pytest

from dev.embedded.control_plane.build import CONTROL_PLANE, HELM, HELM_VERSION, Builder, GoProgram
from dev.embedded.control_plane.steps import NoSteps, SharedSteps, StepsLines
from dev.embedded.control_plane.toolchain import Go, choose_toolchain, get_pinned_toolchain, is_new_enough
from dev.embedded.errors import BuildError

BUILDS = """\
case "$1" in
list) echo "go: downloading example.org/module v1.0.0" >&2; echo example.org/one; echo example.org/two;;
build) echo example.org/one >&2; echo example.org/two >&2
       while [ "$1" != -o ]; do shift; done; echo built > "$2"; mkdir -p "$GOCACHE"; echo run >> "$RUNS";;
esac
"""
FAILS = 'if [ "$1" = list ]; then exit 0; fi; echo "main.go:7: undefined: kwok" >&2; exit 1'


def a_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def a_builder(
    folder: Path, script: str = BUILDS, version: str = "go1.26.8", program: GoProgram = CONTROL_PLANE
) -> Builder:
    go = Go(a_program(folder / "bin" / "go", script), version)
    return Builder(folder / "cache", go, {**os.environ, "RUNS": str(folder / "runs"), "GOCACHE": ""}, program)


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("go1.26", True), ("go1.26.8", True), ("go1.27.1", True), ("go2.0", True),
        ("go1.25.9", False), ("go1.3", False), ("devel go1.27-abcdef", False), ("", False),
    ],
)  # fmt: skip
def test_a_go_counts_from_the_version_of_the_sources_on(version: str, enough: bool) -> None:
    assert is_new_enough(version) is enough


def test_the_go_of_the_machine_is_taken_when_it_is_new_enough(tmp_path: Path) -> None:
    go = a_program(tmp_path / "bin" / "go", "echo go1.26.8")
    assert choose_toolchain({"PATH": str(go.parent)}, tmp_path) == Go(go, "go1.26.8")


def test_an_old_go_and_none_at_all_are_the_same(tmp_path: Path) -> None:
    old = a_program(tmp_path / "bin" / "go", "echo go1.19.8")
    assert choose_toolchain({"PATH": str(old.parent)}, tmp_path) == get_pinned_toolchain(tmp_path)
    assert choose_toolchain({"PATH": str(tmp_path)}, tmp_path) == get_pinned_toolchain(tmp_path)
    assert not get_pinned_toolchain(tmp_path).is_installed


def test_what_is_built_once_is_not_built_again(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.build(NoSteps())
    builder.build(NoSteps())
    assert builder.binary.read_text() == "built\n"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_two_who_build_at_once_build_once(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, "sleep 0.2\n" + BUILDS)
    threads = [threading.Thread(target=builder.build, args=(NoSteps(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "runs").read_text() == "run\n"


def test_another_version_of_go_makes_another_binary(tmp_path: Path) -> None:
    assert a_builder(tmp_path).binary != a_builder(tmp_path, version="go1.27.0").binary


def test_helm_is_a_program_of_its_own_in_the_version_that_its_module_names(tmp_path: Path) -> None:
    lines: list[str] = []
    builder = a_builder(tmp_path, program=HELM)
    builder.build(StepsLines(lines.append))
    assert builder.binary.name.startswith("helm-")
    assert lines[-1] == "compiling Helm (packages): 2 of 2"
    assert f"\thelm.sh/helm/v3 v{HELM_VERSION} " in (HELM.sources / "go.mod").read_text(encoding="utf-8")


def test_nothing_of_the_compiler_is_left_behind(tmp_path: Path) -> None:
    builder = a_builder(tmp_path)
    builder.build(NoSteps())
    assert not (builder.cache / "go").exists()


def test_a_failure_shows_what_the_compiler_printed_and_leaves_no_binary(tmp_path: Path) -> None:
    builder = a_builder(tmp_path, FAILS)
    with pytest.raises(BuildError, match="undefined: kwok") as failure:
        builder.build(NoSteps())
    assert str(builder.cache / "build.log") in str(failure.value)
    assert not builder.binary.exists()


def test_progress_names_the_part_and_how_far_it_is(tmp_path: Path) -> None:
    lines: list[str] = []
    a_builder(tmp_path).build(StepsLines(lines.append))
    assert lines[0].startswith("downloading Go modules (at most): 1 of ")
    assert lines[-1] == "compiling Kubernetes (packages): 2 of 2"


def test_a_process_that_waits_sees_the_steps_of_the_builder(tmp_path: Path) -> None:
    lines: list[str] = []
    SharedSteps(NoSteps(), tmp_path / "progress.json").report("compiling", 3, 7)
    SharedSteps(StepsLines(lines.append), tmp_path / "progress.json").report_builder()
    assert lines == ["compiling: 3 of 7"]


def test_a_process_that_waits_for_a_build_without_progress_prints_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    SharedSteps(StepsLines(lines.append), tmp_path / "progress.json").report_builder()
    assert lines == []
