"""Changes of a pod's resource claims: looser bounds in their selectors, and other device classes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from engine.claims.explanation import ExplainedRequest, explain_node
from engine.claims.findings import SelectorFailure
from engine.claims.inventory import read_inventory
from engine.claims.judge import NO_DEVICES, ClaimsJudge
from engine.claims.judgement import DeviceReason
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.filters import dynamic_resources
from engine.filters.judgement import Judgement
from engine.simulation.change_trial import ChangeTrial
from engine.simulation.cluster import SimulationCluster
from engine.simulation.verdict import PodVerdict
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError
from engine.suggestions.suggestion import Edit
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

MAX_NODES: Final = 8
"""Limit of the nodes on which each kind of change is tried."""
MAX_BOUNDS: Final = 8
"""Limit of the values to which a bound of one request is loosened: the nearest ones."""
MAX_CLASSES: Final = 6
"""Limit of the classes that are tried for one request."""
_ORDERINGS: Final = (">=", ">", "<=", "<")
_DRIVER: Final = re.compile(r"device\.driver\s*==\s*['\"]([^'\"]{1,253})['\"]")
_SIMILAR: Final = 0.6


def iterate_claim_trials(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    """Iterate over looser bounds and other classes for the claims that nodes refuse only for their devices."""
    refused = [
        name
        for name in list_refused_by(judgement, {dynamic_resources.NAME})
        if judgement.refused[name].reasons == (NO_DEVICES,)
    ]
    if refused:
        yield from _iterate_looser_claims(cluster, verdict, judgement, refused)
        yield from iterate_class_trials(cluster, verdict)


def list_refused_by(judgement: Judgement, filters: set[str]) -> list[str]:
    """List the nodes that only these filters refuse."""
    names = (name for name, refusal in judgement.refused.items() if refusal.plugin in filters)
    return [name for name in names if judgement.alone.get(name, {}).keys() <= filters]


def _iterate_looser_claims(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement, refused: Sequence[str]
) -> Iterator[ChangeTrial]:
    """Iterate over bounds of selectors that devices just miss, each loosened to the value of one of these devices."""
    inventory = read_inventory(cluster.snapshot)
    try:
        judge = ClaimsJudge(inventory, collect_claims(inventory, judgement.pod, judgement.request))
    except (FieldError, ClaimRejectedError):
        return
    for name in refused[:MAX_NODES]:
        for request in explain_node(judge, cluster.snapshot.nodes[name].node).requests:
            for edit, expression in _list_looser(request):
                if changed := _rewrite_claim(cluster, verdict.pod, edit, expression):
                    yield ChangeTrial((edit,), verdict.pod, objects=(changed,))


def _list_looser(request: ExplainedRequest) -> list[tuple[Edit, str]]:
    """List the looser bounds, each with the whole expression that the bound is part of."""
    looser: dict[str, tuple[Edit, str]] = {}
    for device in request.devices:
        if [finding.reason for finding in device.findings] != [DeviceReason.SELECTOR_NOT_MATCHED]:
            continue
        cause = device.findings[0].cause
        if not isinstance(cause, SelectorFailure) or len(cause.parts) != 1:
            continue
        part = cause.parts[0]
        if part.operator in _ORDERINGS and part.text in cause.expression and part.text.count(part.expected) == 1:
            after = part.text.replace(part.expected, part.actual)
            edit = Edit("claim", request.claim, part.text, after, _measure_loss(part.expected, part.actual))
            looser.setdefault(after, (edit, cause.expression))
    return sorted(looser.values(), key=lambda pair: pair[0].share)[:MAX_BOUNDS]


def _measure_loss(expected: str, actual: str) -> float:
    """Measure the share that a bound gives up; a half where the values are no numbers."""
    numbers = [_read_number(text) for text in (expected, actual)]
    if None in numbers or not numbers[0]:
        return 0.5
    before, after = (number or 0.0 for number in numbers)
    return min(1.0, abs(before - after) / abs(before))


def _read_number(text: str) -> float | None:
    units = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}
    digits = text.rstrip("KMGTki")
    try:
        return float(digits) * units[text[len(digits) :]]
    except (ValueError, KeyError):
        return None


def _rewrite_claim(cluster: SimulationCluster, pod: Json, edit: Edit, expression: str) -> Json | None:
    """Write the looser bound into the claim, or into the template that the pod's claim is made from."""
    source = _find_source(cluster, pod, edit.where)
    after = expression.replace(edit.before, edit.after)
    return {**source, "spec": replace_expression(get_object(source, "spec"), expression, after)} if source else None


def _find_source(cluster: SimulationCluster, pod: Json, claim_name: str) -> Json | None:
    """Find a claim of the pod, or the template that it is made from."""
    namespace, prefix = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
    claim = cluster.snapshot.get_objects(kinds.RESOURCE_CLAIM).get((namespace, claim_name))
    if claim is not None:
        return dict(claim)
    templates = {
        f"{prefix}-{get_text(reference, 'name')}": get_text(reference, "resourceClaimTemplateName")
        for reference in iterate_objects(pod, "spec", "resourceClaims")
    }
    template = cluster.snapshot.get_objects(kinds.CLAIM_TEMPLATE).get((namespace, templates.get(claim_name, "")))
    return None if template is None else dict(template)


def replace_expression(value: Any, before: str, after: str) -> Any:
    """Return a copy of a specification in which one expression of CEL is replaced by another."""
    if isinstance(value, Mapping):
        return {
            key: after if key == "expression" and entry == before else replace_expression(entry, before, after)
            for key, entry in value.items()
        }
    return [replace_expression(entry, before, after) for entry in value] if isinstance(value, list) else value


def iterate_class_trials(cluster: SimulationCluster, verdict: PodVerdict) -> Iterator[ChangeTrial]:
    """Iterate over the requests of the pod's claims with a related class each, the most similar names first."""
    classes = {name: value for (_, name), value in cluster.snapshot.get_objects(kinds.DEVICE_CLASS).items()}
    for claim_name in _list_claim_names(verdict.pod):
        source = _find_source(cluster, verdict.pod, claim_name)
        if source is None:
            continue
        for request_name, current in _list_classes(source):
            for other in _list_related(current, classes)[:MAX_CLASSES]:
                edit = Edit("class", f"{claim_name}: {request_name}", current, other)
                changed = {**source, "spec": _replace_class(get_object(source, "spec"), request_name, other)}
                yield ChangeTrial((edit,), verdict.pod, objects=(changed,))


def _list_claim_names(pod: Json) -> list[str]:
    generated = {
        get_text(status, "name"): get_text(status, "resourceClaimName")
        for status in iterate_objects(pod, "status", "resourceClaimStatuses")
    }
    prefix = get_text(pod, "metadata", "name")
    return [
        get_text(entry, "resourceClaimName") or generated.get(name) or f"{prefix}-{name}"
        for entry in iterate_objects(pod, "spec", "resourceClaims")
        for name in [get_text(entry, "name")]
    ]


def _list_classes(source: Json) -> list[tuple[str, str]]:
    """List the requests of a claim or template with their class; an alternative has its parent's name in front."""
    spec = get_object(source, "spec")
    listed = []
    for request in iterate_objects(get_object(spec, "spec") or spec, "devices", "requests"):
        name = get_text(request, "name")
        listed.append((name, get_text(request, "exactly", "deviceClassName")))
        listed += [
            (f"{name}/{get_text(choice, 'name')}", get_text(choice, "deviceClassName"))
            for choice in iterate_objects(request, "firstAvailable")
        ]
    return [(name, class_name) for name, class_name in listed if class_name]


def _list_related(current: str, classes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """List the other classes of the same vendor or with a similar name: a device of another kind replaces no GPU."""
    drivers = _find_drivers(classes.get(current, {}))
    scores = {name: SequenceMatcher(None, current, name).ratio() for name in classes if name != current}
    related = [
        name
        for name, score in scores.items()
        if score >= _SIMILAR or (drivers & _find_drivers(classes[name])) or _get_domain(name) == _get_domain(current)
    ]
    return sorted(related, key=lambda name: (-scores[name], name))


def _find_drivers(device_class: Mapping[str, Any]) -> set[str]:
    selectors = iterate_objects(device_class, "spec", "selectors")
    return {driver for selector in selectors for driver in _DRIVER.findall(get_text(selector, "cel", "expression"))}


def _get_domain(class_name: str) -> str:
    """Return the domain of the vendor that ends a name of three labels or more; otherwise the name."""
    labels = class_name.split(".")
    return ".".join(labels[-2:]) if len(labels) > 2 else class_name


def _replace_class(spec: Mapping[str, Any], request_name: str, class_name: str) -> Json:
    """Return a copy of the spec of a claim or template in which one request names another class."""
    if inner := get_object(spec, "spec"):
        return {**spec, "spec": _replace_class(inner, request_name, class_name)}
    parent, _, choice = request_name.partition("/")
    requests = []
    for request in iterate_objects(spec, "devices", "requests"):
        if get_text(request, "name") != parent:
            requests.append(request)
        elif choice:
            choices = [
                {**entry, "deviceClassName": class_name} if get_text(entry, "name") == choice else entry
                for entry in iterate_objects(request, "firstAvailable")
            ]
            requests.append({**request, "firstAvailable": choices})
        else:
            requests.append({**request, "exactly": {**get_object(request, "exactly"), "deviceClassName": class_name}})
    return {**spec, "devices": {**get_object(spec, "devices"), "requests": requests}}
