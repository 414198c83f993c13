"""The manifests for krew and k9s: what these programs ask of them, and commands that are there."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from cli.terminal.commands import QUESTIONS

KREW = Path("deploy/krew/schedulerlog.yaml")
K9S = Path("deploy/k9s/plugins.yaml")


def render_krew_manifest(tag: str = "v0.1.0") -> Any:
    """Render the manifest as krew-release-bot fills it in."""
    text = KREW.read_text()
    archives = re.compile(r'\{\{addURIAndSha "([^"]+)" \.TagName \}\}')
    text = archives.sub(lambda match: f"uri: {match[1]}\n      sha256: {'0' * 64}", text)
    return yaml.safe_load(text.replace("{{ .TagName }}", tag))


def test_the_manifest_of_krew_has_what_krew_asks_for() -> None:
    """https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/"""
    manifest = render_krew_manifest()
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", KREW.stem)
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert len(spec["shortDescription"]) <= 50
    for platform in spec["platforms"]:
        assert platform["uri"].startswith("https://")
        assert platform["uri"].endswith(".tar.gz")
        assert set(platform) == {"selector", "uri", "sha256", "bin"}
    places = [tuple(target["selector"]["matchLabels"].values()) for target in spec["platforms"]]
    assert len(set(places)) == len(places)


def test_the_plugin_of_k9s_calls_a_command_that_is_there() -> None:
    """https://k9scli.io/topics/plugins/"""
    [plugin] = yaml.safe_load(K9S.read_text())["plugins"].values()
    assert {"shortCut", "description", "scopes", "command", "args"} <= set(plugin)
    words = shlex.split(plugin["args"][1])
    assert words[:2] == ["kubectl", "schedulerlog"]
    assert words[2] in QUESTIONS
    assert plugin["args"][3:] == ["$NAME", "$NAMESPACE", "$CONTEXT"]
    assert len(K9S.read_text().splitlines()) <= 12
