"""docs/switching-from-hami.md: what an operator copies from it has to be there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from engine.hami.vendors import NVIDIA
from runtime.cli.lazy_commands import load
from scheduler.__main__ import COMMANDS

GUIDE = (Path(__file__).parents[3] / "docs" / "switching-from-hami.md").read_text()


def iterate_blocks() -> Iterator[Any]:
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL):
        yield from yaml.safe_load_all(block)


def list_flags() -> set[str]:
    options = [option for name in ("serve", "simulate") for option in load(COMMANDS[name]).params]
    return {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


def test_every_flag_that_the_guide_names_is_one() -> None:
    table = GUIDE.split("## 2.")[1].split("## 3.")[0]
    ours = " ".join(row.split("|")[2] for row in table.splitlines() if row.startswith("| `"))
    written = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", ours + GUIDE.split("## 4.")[1].split("## 5.")[0]))
    helms = {"--set", "-1", "-2"}
    assert written - helms <= list_flags()


def test_kube_scheduler_leaves_every_nvidia_resource_to_the_extender() -> None:
    (configuration,) = (block for block in iterate_blocks() if block["kind"] == "KubeSchedulerConfiguration")
    managed = {resource["name"] for resource in configuration["extenders"][0]["managedResources"]}
    names = NVIDIA.resources
    assert managed == {names.count, names.memory, names.percentage, names.cores, names.priority}
    assert configuration["percentageOfNodesToScore"] == 100
