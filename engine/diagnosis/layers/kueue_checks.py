"""Kueue's admission checks of a Workload: rejected, failing, not ready, or placed on another cluster."""

import re
from typing import Final

from engine.diagnosis.layers.kueue_workloads import Workload
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import quote
from runtime.kubernetes.object_fields import get_text, iterate_objects, list_conditions

_PROVISIONING: Final = "ProvisioningRequest.autoscaling.x-k8s.io"
_NOT_PROVISIONED: Final = (("Failed", "True"), ("Provisioned", "False"))
"""Conditions of a ProvisioningRequest, with the status in which they say that there are no nodes for it."""
_FAILS: Final = re.compile(r"\b(?:[Ee]rror|denied|failed|[Ff]ailure|[Rr]ejected|[Cc]ould not|[Cc]annot)\b")
"""Words of a check's controller that did not get what it asked for."""
_WEBHOOK: Final = re.compile(r"admission webhook \"[^\"]+\" denied the request: ")
"""Name of who refused: what it objects to comes after it, often far behind."""
_REMOTE: Final = re.compile(r"got reservation on \"(?P<cluster>[^\"]+)\"")


def explain_rejection(workload: Workload) -> FoundObstacle | None:
    """Explain a Workload that an admission check has rejected: Kueue does not ask the check again."""
    for check in iterate_objects(workload.object, "status", "admissionChecks"):
        if get_text(check, "state") == "Rejected":
            why = quote(get_text(check, "message"))
            words: dict[str, Word] = {"check": get_text(check, "name"), "why": why}
            return FoundObstacle("KueueCheckRejected", words, clauses=["why"] if why else [])
    return None


def explain_remote(workload: Workload) -> FoundObstacle | None:
    """Explain a Workload that MultiKueue runs on another cluster: its pods are there, and none is made here."""
    for check in iterate_objects(workload.object, "status", "admissionChecks"):
        if match := _REMOTE.search(get_text(check, "message")):
            return FoundObstacle("KueueElsewhere", {"cluster": match["cluster"], "check": get_text(check, "name")})
    return None


def explain_checks(workload: Workload) -> FoundObstacle:
    """Explain a Workload that has its quota, and waits for admission checks or its topology."""
    if failure := _explain_failing_check(workload):
        return failure
    admitted = workload.find_condition("Admitted")
    why = describe_checks(workload) or (quote(f"{admitted.reason}: {admitted.message}") if admitted else "")
    return FoundObstacle("KueueChecks", {"why": why}, clauses=["why"] if why else [])


def _explain_failing_check(workload: Workload) -> FoundObstacle | None:
    """Explain the check that is tried again, or whose controller writes of an error."""
    for check in iterate_objects(workload.object, "status", "admissionChecks"):
        state, message = get_text(check, "state"), get_text(check, "message")
        if message and (state == "Retry" or (state == "Pending" and _FAILS.search(message))):
            why = quote(_WEBHOOK.sub("", message)) + _describe_provisioning(workload, get_text(check, "name"))
            return FoundObstacle("KueueCheckFails", {"check": get_text(check, "name"), "state": state, "why": why})
    return None


def describe_checks(workload: Workload) -> str:
    """Describe the admission checks that are not ready, with the words of a provisioner that one of them asks."""
    return "; ".join(
        f"{get_text(check, 'name')} is {get_text(check, 'state')}"
        + (f" ({quote(why)})" if (why := get_text(check, "message")) else "")
        + _describe_provisioning(workload, get_text(check, "name"))
        for check in iterate_objects(workload.object, "status", "admissionChecks")
        if get_text(check, "state") != "Ready"
    )


def _describe_provisioning(workload: Workload, check: str) -> str:
    """Describe the latest ProvisioningRequest of a check: Kueue names it after the Workload, the check and a number."""
    beginning = f"{workload.name}-{check}-"
    entries = [
        entry
        for entry in workload.objects.select(_PROVISIONING, workload.namespace)
        if get_text(entry, "metadata", "name").startswith(beginning)
    ]
    latest = max(entries, key=lambda entry: get_text(entry, "metadata", "name"), default=None)
    conditions = [entry for entry in list_conditions(latest or {}) if entry.type in ("Failed", "Provisioned")]
    failures = [entry for entry in conditions if (entry.type, entry.status) in _NOT_PROVISIONED]
    words = quote(f"{failures[0].reason}: {failures[0].message}") if failures else ""
    return f"; ProvisioningRequest {get_text(latest, 'metadata', 'name')}: {words}" if words else ""
