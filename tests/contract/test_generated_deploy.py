"""The files under deploy/ that are made from code are what the code makes: `make generate` writes them."""

from pathlib import Path

import pytest
import yaml

from deploy import managed_resources
from deploy.dashboards.slo import write_rules
from engine.fit import device_config

COMPONENTS = Path("deploy/kustomize/components")
WRITTEN = {COMPONENTS / "prometheus/slo.yaml": write_rules()}


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
    there = {path.name for path in (COMPONENTS / "grafana").glob("*.json")}
    config_maps = yaml.safe_load((COMPONENTS / "grafana/kustomization.yaml").read_text())["configMapGenerator"]
    assert len(there) == 2
    assert there == {name for config_map in config_maps for name in config_map["files"]}
    # Grafana's sidecar looks for the label.
    assert all(config_map["options"]["labels"]["grafana_dashboard"] == "1" for config_map in config_maps)


def test_the_component_of_prometheus_has_the_rules_of_the_objectives() -> None:
    assert "slo.yaml" in yaml.safe_load((COMPONENTS / "prometheus/kustomization.yaml").read_text())["resources"]


def test_make_generate_writes_these_files() -> None:
    recipe = Path("Makefile").read_text().partition("\ngenerate:")[2].partition("\n\n")[0]
    assert "deploy.managed_resources" in recipe
    assert "dashboards slo-rules deploy/kustomize/components/prometheus/slo.yaml" in recipe
