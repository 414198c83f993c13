"""The resources that kube-scheduler leaves to our extender: those of every vendor in the shipped device configuration.

``python -m deploy.managed_resources`` writes them into the component's configuration. kube-scheduler would compare a
resource that is not listed with the node's allocatable, where most of them are missing.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from engine.fit import device_config
from engine.hami.vendors import Vendor

FILE: Final = Path(__file__).parent / "kustomize" / "components" / "scheduler" / "kube-scheduler.yaml"
_LIST: Final = "    managedResources:\n"


def list_resources(vendors: Iterable[Vendor]) -> list[str]:
    """List the resources of the vendors, each once."""
    return list(dict.fromkeys(name for vendor in vendors for name in vendor.resources.names))


def write_configuration(text: str, vendors: Iterable[Vendor]) -> str:
    """Replace the list at the end of a configuration by the resources of the vendors."""
    head, key, _ = text.partition(_LIST)
    if not key:
        raise ValueError(f"{FILE.name} has no line {_LIST.strip()!r}: put it back as the last key of the extender")
    lines = (f"      - {{name: {name}, ignoredByScheduler: true}}\n" for name in list_resources(vendors))
    return head + _LIST + "".join(lines)


def main() -> None:
    """Write the file."""
    FILE.write_text(write_configuration(FILE.read_text("utf-8"), device_config.read_shipped()), "utf-8")


if __name__ == "__main__":
    main()
