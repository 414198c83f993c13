"""Texts of refusals in the Go module that the control plane is built from, against the table of all texts.

A unit test compares the catalogue of obstacles with the table.
"""

import os
import re
from pathlib import Path
from typing import Final

import pytest

import engine.filters
from dev.embedded.control_plane.build import KUBERNETES_VERSION, SOURCES
from dev.embedded.control_plane.toolchain import choose_toolchain
from dev.embedded.download import locate_user_cache
from tests.support.control_plane.plugin_texts import MODULE, download_module, read_table, scan_texts

_REASON_OF_JUDGE: Final = re.compile(r'"(node\(s\) [^"{}]*)"')


@pytest.fixture(scope="module")
def module_texts(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    go = choose_toolchain(os.environ, locate_user_cache(os.environ) / "control-plane")
    if not go.is_installed:
        pytest.skip("the machine has no Go; the build of the control plane installs one")
    folder = os.environ.get("GOMODCACHE") or str(tmp_path_factory.mktemp("modules"))
    return scan_texts(download_module(go.executable, KUBERNETES_VERSION, {**os.environ, "GOMODCACHE": folder}))


def test_the_control_plane_is_built_from_the_scanned_module() -> None:
    assert f"\t{MODULE} v{KUBERNETES_VERSION}\n" in (SOURCES / "go.mod").read_text(encoding="utf-8")


def test_the_table_has_the_texts_of_the_module(module_texts: frozenset[str]) -> None:
    table = {text for text, versions in read_table().items() if KUBERNETES_VERSION in versions}
    assert module_texts == table, "write the table again: python -m tests.support.control_plane.plugin_texts VERSION …"


def test_the_judge_writes_only_texts_of_the_plugins() -> None:
    (folder,) = map(Path, engine.filters.__path__)
    written = {text for file in folder.glob("*.py") for text in _REASON_OF_JUDGE.findall(file.read_text("utf-8"))}
    assert len(written) > 15
    plugins = "\n".join(read_table())
    assert [text for text in sorted(written) if text not in plugins] == []
