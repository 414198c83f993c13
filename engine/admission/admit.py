"""Admission of a pod (HAMi's `webhook.Handle`): checks and changes in HAMi's order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.admission.container_quantities import InvalidRequestError, get_amounts
from engine.admission.mutate import mutate
from engine.fit.devices.pod_usage import list_sidecars
from engine.fit.devices.quota import Quotas
from engine.fit.judge.request.pod_request import deny_asking, read_request
from engine.hami.vendors import ONLY_NVIDIA, Vendor, Vendors
from schemas.json_types import Json

DEFAULT_SCHEDULER: Final = "default-scheduler"
_FORBIDDEN: Final = 403
_FAILED: Final = 500


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """scheduler_name: what pods with devices get; empty gives none. vendors: whose resources count."""

    scheduler_name: str = "hami-scheduler"
    overwrites_default_scheduler: bool = True
    vendors: Vendors = ONLY_NVIDIA


@dataclass(frozen=True, slots=True)
class Admitted:
    """The pod may come in, as `pod` (a copy where something was changed, which shares all else with the original)."""

    pod: Mapping[str, Any]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """The pod may not come in; code 403 for a rule, 500 for a request that can't be understood."""

    message: str
    code: int = _FORBIDDEN


def admit(pod: Mapping[str, Any], rules: AdmissionRules, quotas: Quotas) -> Admitted | Denied:
    """Admit or deny `pod`, whose containers are objects with names, as `review` checks. Quotas count what runs
    already."""
    spec = pod.get("spec") or {}
    if not spec.get("containers"):
        return Denied("pod has no containers")
    if _is_anothers(spec.get("schedulerName") or "", rules):
        return Admitted(pod, "pod already has different scheduler assigned")
    # Before they are copied and completed.
    if denial := deny_asking(_name_devices(spec, rules.vendors)):
        return Denied(denial)
    # The patch is the difference between the two, so the pod under review must remain as it came.
    changed = _copy_pod(pod)
    try:
        asks = _mutate_all(changed, rules)
    except InvalidRequestError as error:
        return Denied(str(error), _FAILED)
    denial = deny_asking(asks) or (_explain_denial_of_spec(changed["spec"], rules) if asks else "")
    denial = denial or _find_mistake(changed["spec"], rules.vendors) or _explain_denial_by_quota(changed, rules, quotas)
    return Denied(denial) if denial else Admitted(changed)


def _copy_pod(pod: Mapping[str, Any]) -> Json:
    """Copy the pod down to what `mutate` writes into. All else is shared: a pod may have half a million variables."""
    spec = dict(pod["spec"])
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_copy_container(container) for container in spec[field]]
    return {**pod, "spec": spec}


def _copy_container(container: Json) -> Json:
    resources = container.get("resources")
    if not resources:
        return dict(container)
    copied = {name: dict(value) if isinstance(value, dict) else value for name, value in resources.items()}
    return {**container, "resources": copied}


def _is_anothers(name: str, rules: AdmissionRules) -> bool:
    """Tell whether another scheduler was named by hand. Kubernetes itself writes the default scheduler's name."""
    if not name or (name == DEFAULT_SCHEDULER and rules.overwrites_default_scheduler):
        return False
    return not rules.scheduler_name or name != rules.scheduler_name


def _name_devices(spec: Mapping[str, Any], vendors: Vendors) -> int:
    """Name the number of containers that name a number of devices."""
    counts = {vendor.resources.count for vendor in vendors}
    return sum(not counts.isdisjoint(get_amounts(container, "limits")) for container in _iterate_containers(spec))


def _mutate_all(pod: Json, rules: AdmissionRules) -> int:
    """Complete every container for every vendor; how often one asks for the devices of one."""
    return sum(
        mutate(pod, container, vendor) for container in _iterate_containers(pod["spec"]) for vendor in rules.vendors
    )


def _iterate_containers(spec: Mapping[str, Any]) -> Iterator[Json]:
    """Iterate over the containers, init containers first."""
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _explain_denial_of_spec(spec: Json, rules: AdmissionRules) -> str:
    """Explain why a pod must not ask for devices; else give it our scheduler."""
    for container in _iterate_containers(spec):
        if (container.get("securityContext") or {}).get("privileged") is True:
            return f"container {container.get('name', '')} is privileged"
    if rules.scheduler_name:
        spec["schedulerName"] = rules.scheduler_name
        # Such a pod never reaches a scheduler, so nothing would assign its devices.
        if spec.get("nodeName"):
            return "pod has node assigned"
    return ""


def _explain_denial_by_quota(pod: Mapping[str, Any], rules: AdmissionRules, quotas: Quotas) -> str:
    namespace = (pod.get("metadata") or {}).get("namespace") or ""
    fits = all(_fits_quota(pod["spec"], vendor, namespace, quotas) for vendor in rules.vendors)
    return "" if fits else "exceeding resource quota"


def _fits_quota(spec: Json, vendor: Vendor, namespace: str, quotas: Quotas) -> bool:
    """Tell whether the quota has room for all app containers together, and for the largest init container."""
    inits, apps = (
        [read_request(container, False, vendor) for container in spec.get(field) or ()]
        for field in ("initContainers", "containers")
    )
    sidecars = list_sidecars({"spec": spec}) if vendor.rules.counts_sidecars else frozenset()
    memory = _sum_needed(
        [ask.count * ask.memory_mib for ask in inits], (ask.count * ask.memory_mib for ask in apps), sidecars
    )
    cores = _sum_needed([ask.count * ask.cores for ask in inits], (ask.count * ask.cores for ask in apps), sidecars)
    quota_left = quotas.compute_left(namespace, vendor)
    return not (memory or cores) or (memory <= quota_left.memory_mib and cores <= quota_left.cores)


def _sum_needed(inits: Sequence[int], apps: Iterable[int], sidecars: frozenset[int]) -> int:
    """Sum the need of the pod: init containers run one after the other, before the app containers, and sidecars next to
    all that start after them. A negative count asks for nothing."""
    running, peaks = 0, [0]
    for position, amount in enumerate(inits):
        peaks.append(running + amount)
        running += amount if position in sidecars else 0
    return max(*peaks, running + sum(apps))


def _find_mistake(spec: Json, vendors: Vendors) -> str:
    """Find the first request that HAMi's release can't read; empty for none."""
    requests = (read_request(container, False, vendor) for container in _iterate_containers(spec) for vendor in vendors)
    return next((f"container {request.name}: {request.mistake}" for request in requests if request.mistake), "")
