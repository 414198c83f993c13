"""Texts of refusals in the sources of kube-scheduler's plugins, and the table of them for 1.28 to 1.36.

The table is written from Go modules, which Go downloads into its module cache:

    python -m tests.support.control_plane.plugin_texts \\
        1.28.15 1.29.15 1.30.14 1.31.14 1.32.9 1.33.5 1.34.2 1.35.0 1.36.3

The scan knows three forms: constants named as errors or reasons, arguments of a call that makes or adds to a refusal,
and fields named ``Reason``. A format such as ``%s`` stands in a text as it does in the source.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

MODULE: Final = "k8s.io/kubernetes"
TABLE: Final = Path(__file__).with_name("plugin_texts.json")
_PLUGINS: Final = Path("pkg/scheduler/framework/plugins")
_NO_PLUGINS: Final = frozenset(("examples", "testing", "queuesort"))
_TEXT: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(rf"({_TEXT}|`[^`]*`)|//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT: Final = re.compile(rf"^\s*(?:const\s+|var\s+)?(\w+)(?:\s+[\w.]+)?\s*=\s*(?:\w+\()?({_TEXT})", re.MULTILINE)
_EXTENDED: Final = re.compile(rf"^\s*(\w+)\s*=\s*(\w+)\s*\+\s*({_TEXT})", re.MULTILINE)
_STATUS: Final = re.compile(r"\b(\w*NewStatus|\w*[uU]nschedulable|AppendReason)\(")
_REFUSING: Final = re.compile(r"Unschedulable|Pending")
_NAMED_REASON: Final = re.compile(r"Reason|^[eE]rr")
_REASON: Final = re.compile(rf"\bReason:\s*(?:fmt\.Sprintf\()?({_TEXT}|\w+)")


def scan_texts(module: Path) -> frozenset[str]:
    """Scan the plugins of a module's folder for the texts of their refusals."""
    folders = {file.parent for file in (module / _PLUGINS).rglob("*.go")}
    plugins = (folder for folder in folders if _NO_PLUGINS.isdisjoint(folder.relative_to(module / _PLUGINS).parts))
    return frozenset(text for folder in plugins for text in _scan_plugin(folder) if " " in text.strip())


def _scan_plugin(folder: Path) -> Iterator[str]:
    files = [file for file in folder.glob("*.go") if not file.name.endswith("_test.go")]
    sources = [_COMMENT.sub(lambda match: match[1] or " ", file.read_text(encoding="utf-8")) for file in files]
    constants = {match[1]: _unquote(match[2]) for source in sources for match in _CONSTANT.finditer(source)}
    extended = [match.groups() for source in sources for match in _EXTENDED.finditer(source)]
    constants |= {name: constants[base] + _unquote(text) for name, base, text in extended if base in constants}
    yield from (text for name, text in constants.items() if _NAMED_REASON.search(name))
    for source in sources:
        yield from _scan_statuses(source, constants)
        for match in _REASON.finditer(source):
            text = _unquote(match[1]) if match[1].startswith('"') else constants.get(match[1])
            yield from filter(None, [text])


def _scan_statuses(source: str, constants: Mapping[str, str]) -> Iterator[str]:
    for match in _STATUS.finditer(source):
        arguments = _cut_arguments(source, match.end())
        texts = [_unquote(text) for text in re.findall(_TEXT, arguments)]
        if not match[1].endswith("NewStatus"):
            # A helper's first text is the reason; the others are names of values that it logs.
            yield from texts[:1]
        elif _REFUSING.search(arguments):
            yield from texts
            words = re.findall(r"\w+", re.sub(_TEXT, "", arguments))
            yield from (constants[word] for word in words if word in constants)


def _cut_arguments(source: str, begin: int) -> str:
    """Cut the arguments of a call whose parenthesis was opened before ``begin``."""
    depth, end = 1, begin
    for match in re.compile(rf"{_TEXT}|[()]").finditer(source, begin):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        end = match.start()
        if depth == 0:
            break
    return source[begin:end]


def _unquote(text: str) -> str:
    unquoted: str = json.loads(text)
    return unquoted


def download_module(go: Path, version: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Download the sources of a version of Kubernetes into Go's module cache, unless they are there."""
    # Outside a folder with a go.mod, and without another toolchain.
    done = subprocess.run(
        [str(go), "mod", "download", "-json", f"{MODULE}@v{version}"],
        env={**environment, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-modcacherw"},
        cwd=Path.home(), capture_output=True, check=True,
    )  # fmt: skip
    return Path(orjson.loads(done.stdout)["Dir"])


def read_table() -> dict[str, list[str]]:
    """Read the versions that have each text."""
    table: dict[str, list[str]] = orjson.loads(TABLE.read_bytes())
    return table


def write_table(versions: list[str], go: Path = Path("go")) -> None:
    """Write the table of these versions."""
    table: dict[str, list[str]] = {}
    for version in versions:
        for text in sorted(scan_texts(download_module(go, version))):
            table.setdefault(text, []).append(version)
    TABLE.write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    write_table(sys.argv[1:])
