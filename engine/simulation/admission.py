"""HAMi's webhook on a pod that does not exist yet, and what it changed, in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.admission.admit import DEFAULT_SCHEDULER, AdmissionRules, Admitted, Denied, admit
from engine.diagnosis.texts import write_phrase
from engine.fit.devices.quota import Quotas
from engine.hami.vendors import Vendors
from engine.simulation.setting import Note
from engine.snapshot.pod_defaults import write_defaults
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

HAMI_SCHEDULER: Final = "hami-scheduler"
FOREIGN_SCHEDULERS: Final = frozenset(
    ("volcano", "kai-scheduler", "yunikorn", "koord-scheduler", "scheduler-plugins-scheduler", "slurm-bridge-scheduler")
)
"""Schedulers that place pods without HAMi's extender."""
_QUOTA_DENIAL: Final = "exceeding resource quota"


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """The pod as the cluster would have it, with what the webhook changed."""

    pod: Json
    notes: tuple[Note, ...]
    denial: str = ""
    """Reason for which the webhook refuses the pod, in its words."""
    is_hamis: bool = True
    """True if HAMi's scheduler places the pod, so that its extender counts the devices."""


def admit_pod(pod: Mapping[str, Any], vendors: Vendors, quotas: Quotas, *, has_hami: bool = True) -> AdmittedPod:
    """Admit the pod as the API server and HAMi's webhook would.

    A denial for a quota is none here: the fit says it with its numbers. has_hami: False for a cluster without HAMi,
    whose pods only get the API server's values.
    """
    written = write_defaults(pod)
    name = get_text(written, "spec", "schedulerName")
    if not has_hami:
        return AdmittedPod(written, (), is_hamis=False)
    if name in FOREIGN_SCHEDULERS:
        note = Note("ForeignScheduler", write_phrase("note_foreign", scheduler=name))
        return AdmittedPod(written, (note,), is_hamis=False)
    # A scheduler of another name is taken for HAMi's under the name of that installation.
    scheduler = HAMI_SCHEDULER if name in ("", DEFAULT_SCHEDULER) else name
    answer = admit(written, AdmissionRules(scheduler, vendors=vendors), quotas)
    if isinstance(answer, Denied):
        denial = "" if answer.message == _QUOTA_DENIAL else answer.message
        return AdmittedPod(_admit_without_quota(written, scheduler, vendors) if not denial else written, (), denial)
    return _build_admitted(written, answer)


def _admit_without_quota(pod: Json, scheduler: str, vendors: Vendors) -> Json:
    answer = admit(pod, AdmissionRules(scheduler, vendors=vendors), Quotas())
    return write_defaults(answer.pod) if isinstance(answer, Admitted) else pod


def _build_admitted(before: Json, answer: Admitted) -> AdmittedPod:
    after = write_defaults(answer.pod)
    return AdmittedPod(after, tuple(_describe_changes(before, after)))


def _describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Note]:
    """Describe what the webhook changed in limits; the variables that it adds matter to no scheduler."""
    for field in ("initContainers", "containers"):
        pairs = zip(iterate_objects(before, "spec", field), iterate_objects(after, "spec", field), strict=True)
        for old, new in pairs:
            limits, written = get_object(old, "resources", "limits"), get_object(new, "resources", "limits")
            added = [f"{key}: {value}" for key, value in written.items() if key not in limits]
            if added:
                words = write_phrase("note_added", container=get_text(new, "name"), amounts=", ".join(added))
                yield Note("WebhookAdds", words)
            for key, value in written.items():
                if key in limits and str(limits[key]) != str(value):
                    yield Note(
                        "WebhookChanges",
                        write_phrase(
                            "note_changed",
                            container=get_text(new, "name"),
                            resource=key,
                            before=str(limits[key]),
                            after=str(value),
                        ),
                    )
    runtime_class = get_text(after, "spec", "runtimeClassName")
    if runtime_class and not get_text(before, "spec", "runtimeClassName"):
        yield Note("WebhookAdds", write_phrase("note_runtime_class", runtime_class=runtime_class))
