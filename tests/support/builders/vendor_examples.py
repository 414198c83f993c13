"""The example node and pod of each vendor (examples/vendors)."""

from pathlib import Path
from typing import Any, Final

import yaml

from engine.fit import device_config

FOLDER: Final = Path(__file__).parents[3] / "examples" / "vendors"
VENDORS: Final = device_config.read_shipped()
MIXED: Final = "mixed"
"""Two vendors on one node, and a container that asks for both."""
NAMES: Final = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_node(name: str, node: str = "") -> dict[str, Any]:
    """Read the example's node, under another name if one is given."""
    manifest: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    manifest["metadata"]["name"] = node or manifest["metadata"]["name"]
    return manifest


def read_pod(name: str, uid: str = "uid", limits: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read the example's pod, with these limits too in its last container."""
    pod: dict[str, Any] = yaml.safe_load((FOLDER / "pods" / f"{name}.yaml").read_text())
    pod["metadata"]["uid"] = uid
    pod["spec"]["containers"][-1]["resources"]["limits"].update(limits or {})
    return pod
