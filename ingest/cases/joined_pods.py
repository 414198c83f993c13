"""A pod that one file does not name, and that another one does: rows of events next to a manifest or a log."""

from collections.abc import Collection, Sequence
from itertools import filterfalse
from typing import Any, Final

from engine.hami.reason_codes import ReasonCode
from engine.snapshot import kinds
from ingest.cases.descriptions import AGE
from ingest.cases.event_subjects import get_namespace, has_started
from ingest.cases.unnamed_pods import DEFAULT_NAME
from runtime.kubernetes.object_fields import get_object, get_text

_UNNAMED: Final = ("default", DEFAULT_NAME)
_REFUSAL: Final = "FailedScheduling"
_COUNTING: Final = (_REFUSAL, ReasonCode.FILTERING_FAILED)


def join_unnamed(objects: Sequence[Any], logged: Collection[str]) -> list[Any] | None:
    """Give events without a pod's name the only pod of the other files; None where none, or several, may be meant.

    ``logged``: pods of the logs, ``namespace/name``. Of several pods the only one that waits is meant.
    """
    built = [entry for entry in objects if _is_built(entry)]
    if len(built) != 1 or any(_get_key(entry)[1] == f"{DEFAULT_NAME}-2" for entry in objects if _is_pod(entry)):
        return None
    is_rejected = get_text(built[0], "status", "phase") == "Failed"
    pods = [entry for entry in objects if _is_pod(entry) and entry is not built[0]]
    # A pod that its kubelet refused has started no container.
    pods = [pod for pod in pods if not (is_rejected and has_started(pod))]
    if len(pods) > 1:
        pods = [pod for pod in pods if _waits(pod)]
    names = [_get_key(pod) for pod in pods] or [_divide(name) for name in logged]
    if len(set(names)) != 1:
        return None
    key = names[0]
    pod = _join(pods[0], built[0]) if pods else {**built[0], "metadata": _name(built[0]["metadata"], key)}
    replaced = {id(built[0]): pod}
    # A log names the nodes of a try; a refusal in an event without a date only counts them.
    others = [entry for entry in objects if entry not in pods] if pods else [*filterfalse(_is_refusal, objects)]
    return [_rename_event(replaced.get(id(entry), entry), key) for entry in others]


def leave_counts_out(objects: Sequence[Any], logged: Collection[str]) -> list[Any]:
    """Leave refusals without a date out, where a log has a try of their pod: it names the nodes that they count."""
    return [entry for entry in objects if not (_is_undated(entry) and "/".join(_get_involved(entry)) in logged)]


def _is_undated(entry: Any) -> bool:
    return isinstance(entry, dict) and AGE in entry and entry.get("reason") in _COUNTING


def _is_pod(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("kind") == kinds.POD


def _is_built(entry: Any) -> bool:
    """Tell whether the pod was built of events that name none: it has no container."""
    return _is_pod(entry) and _get_key(entry) == _UNNAMED and not get_object(entry, "spec").get("containers")


def _is_refusal(entry: Any) -> bool:
    is_event = isinstance(entry, dict) and entry.get("kind") == "Event"
    return is_event and entry.get("reason") == _REFUSAL and _get_involved(entry) == _UNNAMED


def _get_involved(event: Any) -> tuple[str, str]:
    involved = get_object(event, "involvedObject")
    return get_text(involved, "namespace") or "default", get_text(involved, "name")


def _get_key(pod: Any) -> tuple[str, str]:
    return get_namespace(pod), get_text(pod, "metadata", "name")


def _waits(pod: Any) -> bool:
    return not get_text(pod, "spec", "nodeName") and get_text(pod, "status", "phase") in ("", "Pending")


def _divide(name: str) -> tuple[str, str]:
    namespace, _, pod = name.partition("/")
    return namespace, pod


def _join(pod: Any, built: Any) -> Any:
    """Join a pod with what events say of its state, where it has none of its own."""
    if get_object(pod, "status"):
        return pod
    return {**pod, "status": built["status"], "spec": {**built["spec"], **get_object(pod, "spec")}}


def _rename_event(entry: Any, key: tuple[str, str]) -> Any:
    involved = get_object(entry, "involvedObject") if isinstance(entry, dict) else {}
    if involved.get("kind") != kinds.POD or _get_involved(entry) != _UNNAMED:
        return entry
    return {**entry, "involvedObject": _name(involved, key)}


def _name(fields: Any, key: tuple[str, str]) -> Any:
    return {**fields, "namespace": key[0], "name": key[1]}
