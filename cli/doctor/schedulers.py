"""The settings of kube-scheduler and of HAMi's Deployment that decide whether decisions are whole. Pure.

docs/switching-from-hami.md gives the reason for each.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from cli.doctor.findings import Fault
from runtime.files.yaml_lines import YamlError, parse_documents
from schemas.json_types import JsonView

MANAGED: Final = ("gpu", "gpumem", "gpumem-percentage", "gpucores", "priority")
FIRST_HAMI: Final = (2, 5)
LAST_HAMI: Final = (2, 10)
_KIND: Final = "KubeSchedulerConfiguration"
_VERSION: Final = re.compile(r":v?(\d+)\.(\d+)")
_LEVEL: Final = re.compile(r"--?v=?(\d+)")


def find_configurations(configmap: JsonView) -> Iterator[tuple[str, JsonView]]:
    """Find the kube-scheduler configurations with extenders in a ConfigMap, each with its location."""
    metadata = configmap["metadata"]
    for key, content in (configmap.get("data") or {}).items():
        if _KIND not in content:
            continue
        try:
            # The documents of a text that some user of the cluster has written.
            configuration = next((document for _, document in parse_documents(content.encode())), None)
        except YamlError:
            continue
        if isinstance(configuration, dict) and configuration.get("kind") == _KIND and configuration.get("extenders"):
            yield f"{metadata['namespace']}/{metadata['name']} {key}", configuration


def check_configuration(subject: str, configuration: JsonView) -> Iterator[Fault]:
    """Check one KubeSchedulerConfiguration."""
    if configuration.get("percentageOfNodesToScore") != 100:
        problem = f"percentageOfNodesToScore is {configuration.get('percentageOfNodesToScore', 'not set')}"
        remedy = "Write 100: above 100 nodes the extender is otherwise shown a sample, and reasons name only that."
        yield Fault("kube-scheduler", subject, problem, remedy)
    for extender in configuration["extenders"]:
        yield from _check_extender(subject, extender)


def _check_extender(subject: str, extender: JsonView) -> Iterator[Fault]:
    url = urlsplit(extender.get("urlPrefix", ""))
    if url.scheme not in ("http", "https") or not url.hostname:
        yield Fault(
            "kube-scheduler", subject, f"urlPrefix is {extender.get('urlPrefix')!r}", "Write the extender's URL."
        )
    elif (url.scheme == "https") != bool(extender.get("enableHTTPS")):
        problem = f"urlPrefix is {url.scheme}:// and enableHTTPS is {str(bool(extender.get('enableHTTPS'))).lower()}"
        yield Fault("kube-scheduler", subject, problem, "Make the two agree.")
    if not extender.get("nodeCacheCapable"):
        remedy = "Write true: otherwise every call carries all nodes, three times as slow at 1,000 of them."
        yield Fault("kube-scheduler", subject, "nodeCacheCapable is not true", remedy)
    managed = {resource["name"]: resource for resource in extender.get("managedResources") or ()}
    if missing := [f"nvidia.com/{word}" for word in MANAGED if f"nvidia.com/{word}" not in managed]:
        problem = f"managedResources lacks {', '.join(missing)}"
        remedy = "Add them: kube-scheduler looks for them on the nodes otherwise, and refuses the pod."
        yield Fault("kube-scheduler", subject, problem, remedy)
    if wrong := [name for name, resource in managed.items() if not resource.get("ignoredByScheduler")]:
        remedy = "Write ignoredByScheduler: true, or kube-scheduler counts them on nodes itself."
        yield Fault("kube-scheduler", subject, f"does not ignore {', '.join(wrong)}", remedy)
    if {"filterVerb", "bindVerb"} - {key for key in extender if extender[key]}:
        yield Fault("kube-scheduler", subject, "filterVerb or bindVerb is missing", "Write filter and bind.")


def check_hami(deployment: JsonView) -> Iterator[Fault]:
    """Check a Deployment of HAMi's scheduler: an unknown version, a log level that is too low."""
    metadata = deployment["metadata"]
    subject = f"{metadata['namespace']}/{metadata['name']}"
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        if container["name"] != "vgpu-scheduler-extender" or "schedulerlog" in container["image"]:
            continue
        version = _VERSION.search(container["image"])
        if version and not FIRST_HAMI <= (int(version[1]), int(version[2])) <= LAST_HAMI:
            problem = f"{container['image']}: its log was not seen yet; v2.5 to v2.10 are read"
            yield Fault("hami", subject, problem, "Watch schedulerlog_ingest_lines_total for lines that are not known.")
        words = [*container.get("command", ()), *container.get("args", ())]
        levels = [int(match[1]) for word in words if (match := _LEVEL.fullmatch(word))]
        if (levels[-1] if levels else 0) < 4:
            remedy = "Set scheduler.extender.extraArgs to -v=4, or to -v=5 for the reason of every device."
            yield Fault("hami", subject, "logs below -v=4: nodes are not named with their reasons", remedy)
