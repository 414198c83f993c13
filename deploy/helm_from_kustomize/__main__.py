"""Writes the parts of deploy/helm that follow from deploy/kustomize and from the description of the values."""

from pathlib import Path
from typing import Final

from deploy.helm_from_kustomize.edits import list_unused
from deploy.helm_from_kustomize.manifests import KUSTOMIZE
from deploy.helm_from_kustomize.plan import write_templates
from deploy.helm_from_kustomize.values_files import write_defaults, write_schema

CHART: Final = Path(__file__).parents[1] / "helm"
COPIES: Final = {
    "components/prometheus": ("service-monitor.yaml", "rules.yaml", "slo.yaml"),
    "components/grafana": ("schedulerlog-operating.json", "schedulerlog-scheduling.json"),
    "components/scheduler": ("kube-scheduler.yaml",),
}
"""Files that are in the chart as they are. Helm takes links, but reports each of them at every command."""


def write_chart() -> dict[Path, str]:
    """Write the text of each file of the chart that is made."""
    templates = {CHART / "templates" / name: text for name, text in write_templates().items()}
    if unused := list_unused():
        raise ValueError(f"edits.py expects what the manifests do not have: {', '.join(unused)}")
    copies = {
        CHART / "files" / name: (KUSTOMIZE / folder / name).read_text("utf-8")
        for folder, names in COPIES.items()
        for name in names
    }
    return {
        **templates,
        **copies, CHART / "values.yaml": write_defaults(), CHART / "values.schema.json": write_schema()
    }  # fmt: skip


def main() -> None:
    """Write the files."""
    for path, text in write_chart().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
