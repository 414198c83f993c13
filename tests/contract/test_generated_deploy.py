"""The files under deploy/ that are made from code are what the code makes: `make generate` writes them."""

from pathlib import Path

import pytest
import yaml

from cli import settings_page
from deploy import managed_resources
from deploy.dashboards.slo import write_rules
from deploy.helm_from_kustomize.__main__ import write_chart
from deploy.helm_from_kustomize.manifests import KUSTOMIZE
from deploy.helm_from_kustomize.plan import COMPONENTS, NOT_IN_CHART, WRITTEN_BY_HAND
from engine.fit import device_config

PARTS = Path("deploy/kustomize/components")
CHART = Path("deploy/helm")
WRITTEN = {
    PARTS / "prometheus/slo.yaml": write_rules(),
    CHART / "files/settings.json": settings_page.render_commands(settings_page.collect_settings()),
    **{path.relative_to(Path.cwd()): text for path, text in write_chart().items()},
}
BY_HAND = {"grafana.yaml", "ingress.yaml", "keda-authentication.yaml", "prometheus.yaml", "settings.yaml"}
"""Templates of the chart that do not follow from one folder of kustomize."""


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_the_file_is_what_the_code_makes(path: Path) -> None:
    assert path.read_text("utf-8") == WRITTEN[path], "run `make generate`"


def test_kube_scheduler_leaves_the_resources_of_every_shipped_vendor_to_the_extender() -> None:
    text = managed_resources.FILE.read_text("utf-8")
    assert text == managed_resources.write_configuration(text, device_config.read_shipped()), "run `make generate`"


def test_a_configuration_without_the_list_is_refused() -> None:
    with pytest.raises(ValueError, match="no line 'managedResources:'"):
        managed_resources.write_configuration("extenders: []\n", ())


def test_the_component_has_a_config_map_for_each_dashboard_and_no_other() -> None:
    there = {path.name for path in (PARTS / "grafana").glob("*.json")}
    config_maps = yaml.safe_load((PARTS / "grafana/kustomization.yaml").read_text())["configMapGenerator"]
    assert len(there) == 2
    assert there == {name for config_map in config_maps for name in config_map["files"]}
    # Grafana's sidecar looks for the label.
    assert all(config_map["options"]["labels"]["grafana_dashboard"] == "1" for config_map in config_maps)


def test_the_component_of_prometheus_has_the_rules_of_the_objectives() -> None:
    assert "slo.yaml" in yaml.safe_load((PARTS / "prometheus/kustomization.yaml").read_text())["resources"]


def test_every_template_of_the_chart_follows_from_kustomize_or_is_kept_by_hand() -> None:
    there = {path.name for path in (CHART / "templates").glob("*.yaml")}
    assert there == {path.name for path in WRITTEN if path.parent == CHART / "templates"} | BY_HAND


def test_every_folder_of_kustomize_is_in_the_chart_or_left_out_with_a_reason() -> None:
    folders = {
        str(path.parent.relative_to(KUSTOMIZE)) for path in (KUSTOMIZE / "components").rglob("kustomization.yaml")
    }
    named = {component.folder for component in COMPONENTS} | NOT_IN_CHART | WRITTEN_BY_HAND
    assert {
        folder for folder in folders if not any(folder == name or folder.startswith(f"{name}/") for name in named)
    } == set()


def test_make_generate_writes_these_files() -> None:
    recipe = Path("Makefile").read_text().partition("\ngenerate:")[2].partition("\n\n")[0]
    assert "deploy.managed_resources" in recipe
    assert "deploy.helm_from_kustomize" in recipe
    assert "dashboards slo-rules deploy/kustomize/components/prometheus/slo.yaml" in recipe
