"""Reduce a list of packages to the installed ones: ``installed.py CYCLONEDX_FILE``.

uv lists the packages of the lock file for every system and every version of Python.
"""

import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path


def main(path: Path) -> None:
    document = json.loads(path.read_bytes())
    installed = {(normalize_name(distribution.name), distribution.version) for distribution in distributions()}
    components = [
        component for component in document["components"] if (component["name"], component["version"]) in installed
    ]
    left_out = {component["bom-ref"] for component in document["components"]} - {
        component["bom-ref"] for component in components
    }
    document["components"] = components
    document["dependencies"] = [
        dependency | {"dependsOn": [name for name in dependency.get("dependsOn", []) if name not in left_out]}
        for dependency in document["dependencies"]
        if dependency["ref"] not in left_out
    ]
    path.write_text(json.dumps(document, indent=2) + "\n")


def normalize_name(name: str) -> str:
    """Normalize the name as package indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
