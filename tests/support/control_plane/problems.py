"""Objects of an installation that lack something: a file, an account, a name of their own."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from schemas.json_types import Json
from tests.support.control_plane.deployed import list_pod_templates, select_kinds

FOREIGN = {"kube-system", "kai-scheduler"}
"""Namespaces of others, in which two components read a log and one trusts an authority."""
WITHOUT_STORE = {
    "kafka": {"retention", "dashboards", "roles", "policies", "certificate", "mcp", "notify"},
    "opensearch": {
        "worker", "alerts", "events", "alertmanager", "scheduler", "kube-events", "hami-log", "kai-log", "raw-logs",
        "dashboards", "certificate", "mcp", "notify",
    },
}  # fmt: skip
"""Processes, by component label, that use neither certificates nor passwords of the store."""
MADE_BY_OTHERS = {
    "schedulerlog-opensearch", "schedulerlog-opensearch-administrator", "schedulerlog-dashboards",
    "schedulerlog-api-tls", "schedulerlog-mcp-tls", "schedulerlog-notify-targets", "kube-root-ca.crt",
}  # fmt: skip
"""Secrets that users or Jobs make, and the ConfigMap that Kubernetes makes in each namespace."""


def identify(item: Json) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def list_problems(objects: Sequence[Json], namespace: str) -> Iterator[str]:
    """List what a pod would fail on, or what another installation would share."""
    identities = Counter(map(identify, objects))
    yield from (f"{identity} stands there twice" for identity, number in identities.items() if number > 1)
    for item in objects:
        if item["metadata"].get("namespace", namespace) not in {namespace, *FOREIGN}:
            yield f"{identify(item)} is in another namespace"
        for subject in item.get("subjects", ()):
            if subject["kind"] == "ServiceAccount" and subject["namespace"] != namespace:
                yield f"{identify(item)} gives rights to {subject}"
    names = {(kind, name) for kind, namespace_of_item, name in identities if namespace_of_item == namespace}
    data = [item["data"] for item in select_kinds(objects, "ConfigMap")]
    (settings,) = (settings for settings in data if "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS" in settings)
    for name, spec in list_pod_templates(objects):
        yield from (f"{name}: {problem}" for problem in list_reference_problems(spec, names))
        # Helm's Jobs end with a hash.
        process = re.sub("-[0-9a-f]{8}$", "", name.partition("/schedulerlog-")[2]).removesuffix("-certificate")
        # The stores of the demo have no settings of ours.
        if process:
            yield from (f"{name}: {problem}" for problem in list_missing_files(process, spec, settings))


def list_reference_problems(spec: Json, names: set[tuple[str, str]]) -> Iterator[str]:
    volumes = Counter(volume["name"] for volume in spec["volumes"])
    yield from (f"volume {volume} twice" for volume, number in volumes.items() if number > 1)
    account = spec.get("serviceAccountName", "default")
    if account != "default" and ("ServiceAccount", account) not in names:
        yield f"no account {account}"
    yield from (f"no {kind} {name}" for kind, name in iterate_references(spec["volumes"]) if (kind, name) not in names)
    for container in spec["containers"]:
        mounts = Counter(mount["name"] for mount in container["volumeMounts"])
        variables = Counter(variable["name"] for variable in container.get("env", ()))
        doubles = [name for counts in (mounts, variables) for name, number in counts.items() if number > 1]
        yield from (f"{name} twice" for name in doubles)
        yield from (f"no volume {mount}" for mount in mounts if mount not in volumes)


def list_missing_files(process: str, spec: Json, settings: dict[str, str]) -> Iterator[str]:
    """List the files that settings name and that no volume has, of the stores that the process uses."""
    folders = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    for store, without in WITHOUT_STORE.items():
        files = [value for name, value in settings.items() if store in name.lower() and name.endswith("_FILE")]
        if process not in without:
            yield from (f"no volume with {file}" for file in files if file.rpartition("/")[0] not in folders)


def iterate_references(volumes: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Iterate over the Secrets and ConfigMaps without which a pod does not start; users make some of them."""
    for volume in volumes:
        for source in (volume, *volume.get("projected", {}).get("sources", ())):
            for kind, field in (("Secret", "secret"), ("ConfigMap", "configMap")):
                reference = source.get(field)
                name = reference and (reference.get("secretName") or reference["name"])
                if reference and not reference.get("optional") and name not in MADE_BY_OTHERS:
                    yield kind, name
