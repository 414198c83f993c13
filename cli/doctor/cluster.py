"""The cluster: version and clock of its API server, rights of our accounts, settings of schedulers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cli.doctor.devices import check_shared_nodes, list_vendors_of_nodes, read_vendors
from cli.doctor.findings import Fault, check_clock
from cli.doctor.rights import INSTALLED, RIGHTS, Right
from cli.doctor.schedulers import (
    EXTENDER,
    check_configuration,
    check_hami,
    check_plugins,
    check_releases,
    check_webhooks,
    find_configurations,
    list_selectors,
)
from cli.doctor.workloads import (
    check_config_maps,
    check_deployments,
    check_pods,
    check_secret,
    collect_secrets,
    list_config_maps,
    list_optional_secrets,
)
from runtime.cli.installation import VERSION
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from schemas.json_types import Json

MINIMUM: Final = 28
"""The oldest minor version 1.x whose API server has every kind that deploy/ uses."""
OURS: Final = "app.kubernetes.io/part-of=schedulerlog"
HAMI: Final = "app.kubernetes.io/component=hami-scheduler"
PLUGIN: Final = "app.kubernetes.io/component=hami-device-plugin"
_TAG: Final = re.compile(r":v?([^:/@]+)(?:@.*)?$")
_SELF: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


async def check(load: LoadConfiguration, namespace: str) -> tuple[list[Fault], list[str]]:
    """Check the cluster: return the findings, and what could not be looked at."""
    try:
        client = Client(await ApiCredentials.open(load))
    except KubeConfigError as error:
        return [Fault("kubernetes", "kubeconfig", str(error), "Name a kubeconfig with --kubeconfig.")], []
    try:
        return await _Cluster(client, namespace).check()
    except KubeApiError as error:
        remedy = "Is the address of the kubeconfig right, is it reached from here, are its credentials valid?"
        return [Fault("kubernetes", "API server", str(error), remedy)], []
    finally:
        await client.close()


class _Cluster:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._findings: list[Fault] = []
        self._skipped: list[str] = []

    async def check(self) -> tuple[list[Fault], list[str]]:
        """Run the checks one after the other. Raises ``KubeApiError`` if the API server does not answer at all."""
        server = await self._client.get("/version")
        self._findings += check_version(server)
        me = await self._find_user()
        await self._check_rights(me)
        maps = await self._list_config_maps(self._namespace)
        await self._check_workloads(server, maps)
        await self._check_schedulers(maps or ())
        return self._findings, self._skipped

    async def _find_user(self) -> str:
        sent_at = datetime.now(UTC)
        review = await self._client.create(
            _SELF, {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        )
        server_time = datetime.fromisoformat(review["metadata"]["creationTimestamp"])
        self._findings += check_clock("API server", server_time, sent_at, datetime.now(UTC))
        return str(review["status"]["userInfo"]["username"])

    async def _check_rights(self, me: str) -> None:
        accounts = await self._list(f"/api/v1/namespaces/{self._namespace}/serviceaccounts", "service accounts")
        if accounts == []:
            problem = "has no service account of schedulerlog"
            remedy = "Install it (docs/deploy.md), or name its namespace with --namespace."
            self._findings.append(Fault("kubernetes", f"namespace {self._namespace}", problem, remedy))
        names = {account["metadata"]["name"] for account in accounts or ()}
        for process, rights in RIGHTS.items():
            if f"schedulerlog-{process}" in names:
                await self._check_account(process, rights, me)

    async def _check_account(self, process: str, rights: Sequence[Right], me: str) -> None:
        user = f"system:serviceaccount:{self._namespace}:schedulerlog-{process}"
        try:
            for right in rights:
                if not await self._may(user, right, me):
                    where = f" in {self._resolve_namespace(right)}" if right.namespace else ""
                    named = f" {right.name}" if right.name else ""
                    group = f".{right.group}" if right.group else ""
                    problem = f"may not {right.verb} {right.resource}{group}{named}{where}"
                    remedy = f"Apply the rights of schedulerlog-{process} in deploy/kustomize again (rights.yaml)."
                    self._findings.append(Fault("rights", f"schedulerlog-{process}", problem, remedy))
        except KubeApiError as error:
            self._skipped.append(f"rights of schedulerlog-{process}: {error}")

    def _resolve_namespace(self, right: Right) -> str:
        return self._namespace if right.namespace == INSTALLED else right.namespace

    async def _may(self, user: str, right: Right, me: str) -> bool:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource,
            "namespace": self._resolve_namespace(right), "name": right.name,
        }  # fmt: skip
        spec: Json = {"resourceAttributes": {name: value for name, value in attributes.items() if value}}
        if user == me:
            kind, path = "SelfSubjectAccessReview", f"{_REVIEWS}/selfsubjectaccessreviews"
        else:
            kind, path = "SubjectAccessReview", f"{_REVIEWS}/subjectaccessreviews"
            groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{self._namespace}"]
            spec |= {"user": user, "groups": groups}
        body = {"kind": kind, "apiVersion": "authorization.k8s.io/v1", "spec": spec}
        answer = await self._client.create(path, body)
        return bool(answer["status"]["allowed"])

    async def _check_workloads(self, server: Json, maps: Sequence[Json] | None) -> None:
        pods = await self._list(f"/api/v1/namespaces/{self._namespace}/pods", "pods", labelSelector=OURS) or []
        # One that is on its way out, or has done its work, waits for nothing.
        at_work = [
            pod
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        settings = {config_map["metadata"]["name"]: config_map.get("data") or {} for config_map in maps or ()}
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments"
        deployments = await self._list(path, "Deployments", labelSelector=OURS) or []
        self._findings += [
            *check_images(at_work, server), *check_pods(at_work), *check_deployments(deployments),
        ]  # fmt: skip
        # Those that may not be listed are not missing.
        if maps is not None:
            self._findings += check_config_maps(list_config_maps(at_work), settings)
        names = list_optional_secrets(at_work, settings)
        keys = await self._read_secrets(names)
        wanted = collect_secrets(at_work, settings, {name: there for name, there in keys.items() if there})
        keys |= await self._read_secrets(sorted(wanted.keys() - {*names}))
        for name in sorted(wanted.keys() & keys.keys()):
            self._findings += check_secret(name, wanted[name], keys[name])

    async def _read_secrets(self, names: Iterable[str]) -> dict[str, list[str] | None]:
        """Read the keys of the Secrets that may be read, never their values; None for one that is missing."""
        keys: dict[str, list[str] | None] = {}
        for name in names:
            try:
                secret = await self._client.get(f"/api/v1/namespaces/{self._namespace}/secrets/{name}")
                keys[name] = list(secret.get("data") or ())
            except KubeApiError as error:
                if error.is_missing:
                    keys[name] = None
                else:
                    self._skipped.append(f"Secret {name}: {error}")
        return keys

    async def _list_config_maps(self, namespace: str) -> list[Json] | None:
        return await self._list(f"/api/v1/namespaces/{namespace}/configmaps", "ConfigMaps")

    async def _check_schedulers(self, maps: Sequence[Json]) -> None:
        deployments = await self._list("/apis/apps/v1/deployments", "Deployments", labelSelector=HAMI) or []
        namespaces = {"kube-system", *(deployment["metadata"]["namespace"] for deployment in deployments)}
        others = [await self._list_config_maps(name) or () for name in sorted(namespaces - {self._namespace})]
        all_maps = [*maps, *(config_map for of_namespace in others for config_map in of_namespace)]
        await self._check_devices(all_maps, deployments)
        for deployment in deployments:
            self._findings += check_hami(deployment)
        if deployments:
            plugins = await self._list("/apis/apps/v1/daemonsets", "DaemonSets", labelSelector=PLUGIN)
            webhooks = await self._list(_WEBHOOKS, "webhooks")
            self._findings += [*check_releases(deployments), *check_plugins(plugins or (), deployments)]
            # Those that may not be listed are not missing.
            if webhooks is not None:
                self._findings += check_webhooks(webhooks, deployments)

    async def _check_devices(self, maps: Sequence[Json], deployments: Sequence[Json]) -> None:
        """Check the schedulers' settings against the devices of the nodes."""
        nodes = await self._list("/api/v1/nodes", "nodes") or []
        vendors = read_vendors(maps)
        vendors_of_nodes = list_vendors_of_nodes(nodes, vendors)
        for config_map in maps:
            for subject, configuration in find_configurations(config_map):
                self._findings += check_configuration(subject, configuration, vendors_of_nodes)
        if theirs := list_selectors(deployments, EXTENDER, {}, is_ours=False):
            path = f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets"
            stateful_sets = await self._list(path, "StatefulSets", labelSelector=OURS) or []
            settings = {config_map["metadata"]["name"]: config_map.get("data") or {} for config_map in maps}
            ours = list_selectors(stateful_sets, "scheduler", settings, is_ours=True)
            self._findings += check_shared_nodes(nodes, vendors, ours, theirs)

    async def _list(self, path: str, what: str, **query: str) -> list[Json] | None:
        """List objects; None if this account may not list them."""
        try:
            return await self._client.list_objects(path, **query)
        except KubeApiError as error:
            self._skipped.append(f"{what}: {error}")
            return None


def check_version(server: Mapping[str, Any]) -> Iterator[Fault]:
    """Check the answer to ``GET /version``. Pure."""
    if (minor := _parse_minor(server)) < MINIMUM:
        problem = f"is version 1.{minor}; 1.{MINIMUM} is the oldest that deploy/ was written for"
        yield Fault("kubernetes", "API server", problem, "Upgrade the cluster.")


def check_images(pods: Sequence[Mapping[str, Any]], server: Mapping[str, Any]) -> Iterator[Fault]:
    """Check the images of the pods in our namespace. Pure."""
    for pod in pods:
        for container in pod["spec"]["containers"]:
            tag = _TAG.search(container["image"])
            subject = f"pod {pod['metadata']['name']}"
            if tag and "/schedulerlog:" in container["image"] and tag[1] != VERSION:
                problem = f"runs version {tag[1]}, this program is {VERSION}"
                yield Fault("kubernetes", subject, problem, "Upgrade the one that is older (docs/deploy.md, Upgrades).")
            if tag and "kube-scheduler" in container["image"] and tag[1].startswith("1."):
                minor = int(tag[1].split(".")[1])
                # Kubernetes' own rule for versions that differ: never newer than the API server, one older at most.
                if not 0 <= _parse_minor(server) - minor <= 1:
                    problem = f"kube-scheduler {tag[1]} beside an API server of 1.{_parse_minor(server)}"
                    yield Fault("kubernetes", subject, problem, "Set the image's tag to the cluster's version.")


def _parse_minor(server: Mapping[str, Any]) -> int:
    digits = re.match(r"\d+", str(server.get("minor", "")))
    return int(digits[0]) if digits else 0
