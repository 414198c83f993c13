"""Writes the lists of the top-level packages from the folders of the repository: `python .ci/packages.py [--check]`.

A top-level package is a folder with an `__init__.py`. pyproject.toml (contents of the wheel), .dockerignore and
.importlinter list them; with `--check` the lists are compared and nothing is written.
"""

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PARTS: Final = {"deploy": ("dashboards",), "dev": ("demo", "embedded")}
"""Packages of which only these folders are in the wheel: the others serve a checkout."""
DATA: Final = ("examples",)
"""Folders without modules that the demo needs in the wheel."""
LEFT_OUT: Final = ("tests",)


def list_packages() -> list[str]:
    """List the top-level packages of the wheel, in the order of the alphabet."""
    names = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    return sorted(names - set(LEFT_OUT))


def list_wheel_paths() -> list[str]:
    """List the paths that the wheel is built from."""
    paths = []
    for name in list_packages():
        parts = PARTS.get(name, ())
        paths += [f"{name}/__init__.py", *(f"{name}/{part}" for part in parts)] if parts else [name]
    return [*paths, *DATA]


def write_pyproject(text: str) -> str:
    """Replace the contents of the wheel in pyproject.toml."""
    included = "".join(f'    "{path}",\n' for path in list_wheel_paths())
    text = replace(text, r"(only-include = \[\n)(.*?)(\]\n)", included)
    below = [name for name in [*list_packages(), *DATA] if name != "schedulerlog"]
    sources = "".join(f'{name} = "schedulerlog/packages/{name}"\n' for name in below)
    return replace(text, r"(\[tool\.hatch\.build\.targets\.wheel\.sources\]\n)(.*?)(\n)(?=#|\[)", sources)


def write_dockerignore(text: str) -> str:
    """Replace the packages in .dockerignore."""
    return replace(text, r"(!deploy/image\n)(.*?)(\*\*/__pycache__)", "".join(f"!{p}\n" for p in list_wheel_paths()))


def write_importlinter(text: str) -> str:
    """Replace the root packages in .importlinter."""
    packages = "".join(f"    {name}\n" for name in list_packages())
    return replace(text, r"(root_packages =\n)(.*?)(include_external)", packages)


def replace(text: str, pattern: str, lines: str) -> str:
    """Replace the middle group of the only match of ``pattern``."""
    written, count = re.subn(pattern, lambda match: match[1] + lines + match[3], text, count=1, flags=re.DOTALL)
    if not count:
        sys.exit(f".ci/packages.py: no list to replace; the pattern is {pattern}")
    return written


LISTS: Final = {
    "pyproject.toml": write_pyproject,
    ".dockerignore": write_dockerignore,
    ".importlinter": write_importlinter,
}


def main(words: list[str]) -> int:
    """Write the lists, or compare them."""
    differing = []
    for name, write in LISTS.items():
        path = ROOT / name
        text = path.read_text("utf-8")
        if (written := write(text)) != text:
            differing.append(name)
            if "--check" not in words:
                path.write_text(written, "utf-8")
    if differing and "--check" in words:
        print(f"{', '.join(differing)}: the list of packages differs from the folders; run `make generate`")
    return 1 if differing and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
