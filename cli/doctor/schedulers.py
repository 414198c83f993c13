"""The settings of kube-scheduler and of HAMi's Deployment that decide whether decisions are whole. Pure.

docs/switching-from-hami.md gives the reason for each.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from cli.doctor.devices import VendorNodes, name_nodes, read_selector
from cli.doctor.findings import Fault
from runtime.files.yaml_lines import YamlError, parse_documents
from schemas.json_types import JsonView

FIRST_HAMI: Final = (2, 5)
LAST_HAMI: Final = (2, 10)
_KIND: Final = "KubeSchedulerConfiguration"
_VERSION: Final = re.compile(r":v?(\d+)\.(\d+)")
_LEVEL: Final = re.compile(r"--?v=?(\d+)")
EXTENDER: Final = "vgpu-scheduler-extender"
"""Container of HAMi's Deployment, also where ours is in its place."""
_PLUGIN: Final = "device-plugin"
_WEBHOOK: Final = "vgpu.hami.io"


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


def check_configuration(subject: str, configuration: JsonView, vendors: Sequence[VendorNodes]) -> Iterator[Fault]:
    """Check one KubeSchedulerConfiguration. ``vendors``: of the devices in the cluster."""
    if configuration.get("percentageOfNodesToScore") != 100:
        problem = f"percentageOfNodesToScore is {configuration.get('percentageOfNodesToScore', 'not set')}"
        remedy = "Write 100: above 100 nodes the extender is otherwise shown a sample, and reasons name only that."
        yield Fault("kube-scheduler", subject, problem, remedy)
    for extender in configuration["extenders"]:
        yield from _check_extender(subject, extender, vendors)


def _check_extender(subject: str, extender: JsonView, vendors: Sequence[VendorNodes]) -> Iterator[Fault]:
    managed = {resource["name"]: resource for resource in extender.get("managedResources") or ()}
    if managed and not managed.keys() & {name for vendor in vendors for name in vendor.resources}:
        return  # an extender of something else than devices
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
    for vendor in vendors:
        if missing := [name for name in vendor.resources if name not in managed]:
            where = f" ({vendor.word} on {name_nodes(vendor.nodes)})" if vendor.nodes else ""
            problem = f"managedResources lacks {', '.join(missing)}{where}"
            remedy = (
                "Add them (HAMi's chart: enable the vendor): otherwise kube-scheduler looks for them on the nodes and "
                "refuses the pod, or places it without the extender."
            )
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
        if container["name"] != EXTENDER or "schedulerlog" in container["image"]:
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


def check_releases(deployments: Sequence[JsonView]) -> Iterator[Fault]:
    """Check the Deployments of HAMi's scheduler together: two releases."""
    names = [_name(deployment) for deployment in deployments if _find_images(deployment, EXTENDER)]
    if len(names) > 1:
        remedy = "Remove one, or let no node be of both: each could give a device away that the other has given."
        yield Fault("hami", ", ".join(names), f"{len(names)} releases of HAMi schedule", remedy)


def check_plugins(daemon_sets: Iterable[JsonView], deployments: Sequence[JsonView]) -> Iterator[Fault]:
    """Check the DaemonSets of HAMi's device plugin: one that selects no node, another version than the scheduler's."""
    images = [image for deployment in deployments for image in _find_images(deployment, EXTENDER)]
    versions = {match[0] for image in images if (match := _VERSION.search(image)) and "schedulerlog" not in image}
    for daemon_set in daemon_sets:
        status = daemon_set.get("status") or {}
        # Its controller has not looked yet while it has observed no generation.
        if status.get("observedGeneration") and not status.get("desiredNumberScheduled"):
            selector = daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
            labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
            where = f" (nodeSelector {labels})" if labels else ""
            remedy = f"Label the nodes with devices: kubectl label node NODE {labels or 'LABEL=VALUE'}."
            yield Fault("hami", _name(daemon_set), f"the device plugin selects no node{where}", remedy)
        for image in _find_images(daemon_set, _PLUGIN):
            version = _VERSION.search(image)
            if version and versions and version[0] not in versions:
                problem = f"the device plugin is {image}, the scheduler {', '.join(images)}"
                yield Fault("hami", _name(daemon_set), problem, "Upgrade both by one release of HAMi's chart.")


def check_webhooks(configurations: Iterable[JsonView], deployments: Sequence[JsonView]) -> Iterator[Fault]:
    """Check that HAMi's webhook is registered where its scheduler runs, with an authority for its certificate."""
    hooks = [
        (configuration, hook)
        for configuration in configurations
        for hook in configuration.get("webhooks") or ()
        if hook["name"] == _WEBHOOK
    ]
    if not hooks and any(_find_images(deployment, EXTENDER) for deployment in deployments):
        problem = f"no MutatingWebhookConfiguration has {_WEBHOOK}: pods that ask for devices keep their scheduler"
        remedy = "Install it (scheduler.admissionWebhook.enabled), or name the scheduler in every pod."
        yield Fault("hami", "webhook", problem, remedy)
    for configuration, hook in hooks:
        if not hook["clientConfig"].get("caBundle"):
            problem = f"{_WEBHOOK} has no caBundle: the API server does not trust its certificate, and calls it in vain"
            remedy = "Run the chart's Job that patches it again, or look at cert-manager's cainjector."
            yield Fault("hami", str(configuration["metadata"]["name"]), problem, remedy)


def list_selectors(
    workloads: Iterable[JsonView], container_name: str, settings: Mapping[str, Mapping[str, str]], *, is_ours: bool
) -> dict[str, str]:
    """List our schedulers, or HAMi's, with the labels of their nodes. ``settings``: data of ConfigMaps."""
    return {
        _name(workload): read_selector(workload, container_name, settings)
        for workload in workloads
        for image in _find_images(workload, container_name)
        if ("schedulerlog" in image) == is_ours
    }


def _name(workload: JsonView) -> str:
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def _find_images(workload: JsonView, container_name: str) -> list[str]:
    containers = workload["spec"]["template"]["spec"]["containers"]
    return [str(container["image"]) for container in containers if container["name"] == container_name]
