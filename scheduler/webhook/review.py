"""AdmissionReview in, AdmissionReview out (admission.k8s.io/v1; v1beta1 is answered in v1beta1). Pure; bytes to bytes.

What is wrong with a review is an answer too, with code 400 and HTTP 200, as controller-runtime gives it to HAMi.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from engine.admission.admit import AdmissionRules, Admitted, Denied, admit
from engine.fit.devices.quota import Quotas
from engine.fit.judge.request.pod_request import deny_size, names_devices
from engine.hami.quantities import is_quantity
from scheduler.answering.extender_protocol import parse_body
from schemas.json_types import Json


def list_operations(before: Any, after: Any, path: str = "") -> Iterator[Json]:
    """List the operations of the JSON Patch (RFC 6902) from `before` to `after`, in the time that the changes take.
    Parts that both share are not compared; nothing is ever removed."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _list_object_operations(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        for pointer, (old, new) in enumerate(zip(before, after, strict=False)):
            if old is not new:
                yield from list_operations(old, new, f"{path}/{pointer}")
        for pointer in range(len(before), len(after)):
            yield {"op": "add", "path": f"{path}/{pointer}", "value": after[pointer]}
    # In Python 1 equals True.
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _list_object_operations(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Json]:
    for name, new in after.items():
        pointer = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in before:
            yield {"op": "add", "path": pointer, "value": new}
        elif before[name] is not new:
            yield from list_operations(before[name], new, pointer)


# HAMi's chart registers its webhook with v1beta1.
VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_NOTHING: Final = "there is no content to decode"


class UnreadableReviewError(ValueError):
    """The review or its object can't be read; the text goes into the answer."""


def _check_quantity(value: Any) -> Any:
    if not is_quantity(value):
        raise ValueError("is no quantity, write for example 1, 500m or 2Gi")
    return value


class _Checked(BaseModel):
    """The fields of a Pod that we read or change; Kubernetes has checked the others."""

    model_config = ConfigDict(strict=True, extra="ignore")


def _validate_types(kind: type, what: str) -> AfterValidator:
    """Validate only types, and the types of half a million values as fast as Python can."""

    def check(values: Any) -> Any:
        items = values.values() if isinstance(values, dict) else values or ()
        if not set(map(type, items)) <= {kind}:
            raise ValueError(f"is not of {what} alone")
        return values

    return AfterValidator(check)


_Amounts = dict[str, Annotated[Any, AfterValidator(_check_quantity)]]


class _Resources(_Checked):
    limits: _Amounts | None = None
    requests: _Amounts | None = None


class _SecurityContext(_Checked):
    privileged: bool | None = None


class _Container(_Checked):
    name: str | None = None
    env: Annotated[list[Any] | None, _validate_types(dict, "objects")] = None
    resources: _Resources | None = None
    security_context: _SecurityContext | None = Field(None, alias="securityContext")


class _Spec(_Checked):
    init_containers: list[_Container] | None = Field(None, alias="initContainers")
    containers: list[_Container] | None = None
    scheduler_name: str | None = Field(None, alias="schedulerName")
    node_name: str | None = Field(None, alias="nodeName")
    runtime_class_name: str | None = Field(None, alias="runtimeClassName")


class _Metadata(_Checked):
    namespace: str | None = None
    annotations: Annotated[Json | None, _validate_types(str, "strings")] = None


class _Pod(_Checked):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


def answer(body: bytes, rules: AdmissionRules, quotas: Quotas) -> bytes:
    """Answer POST /webhook."""
    try:
        review = _review(body)
    except UnreadableReviewError as error:
        return _encode({}, "", _refuse(str(error), _BAD_REQUEST))
    request = review.get("request")
    fields: Json = request if isinstance(request, dict) else {}
    uid = fields.get("uid")
    return _encode(review, uid if isinstance(uid, str) else "", _respond(fields, rules, quotas))


def _review(body: bytes) -> Json:
    if not body:
        # Go's decoder takes nothing at all for a review that holds nothing.
        return {"kind": "AdmissionReview", "apiVersion": VERSIONS[0]}
    try:
        review = parse_body(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableReviewError(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict):
        raise UnreadableReviewError("couldn't get version/kind; json parse error: the body is not a JSON object")
    version, kind = review.get("apiVersion"), review.get("kind")
    if version not in VERSIONS or kind != "AdmissionReview":
        raise UnreadableReviewError(f"is {version} {kind}, send an AdmissionReview of {' or '.join(VERSIONS)}")
    return review


def _respond(request: Mapping[str, Any], rules: AdmissionRules, quotas: Quotas) -> Json:
    item = request.get("object")
    # Before thousands of containers and quantities are checked, copied and completed.
    if isinstance(item, dict) and (denial := deny_size(item)):
        return _refuse(denial, _FORBIDDEN) if names_devices(item, rules.vendors) else _allow()
    try:
        pod = _check_pod(item)
    except UnreadableReviewError as error:
        return _refuse(str(error), _BAD_REQUEST)
    verdict = admit(pod, rules, quotas)
    if isinstance(verdict, Denied):
        return _refuse(verdict.message, verdict.code)
    return _allow_patched(pod, verdict)


def _check_pod(item: Any) -> Json:
    """Check the pod under review as far as we rely on it. Raises UnreadableReviewError."""
    if item is None:
        raise UnreadableReviewError(_NOTHING)
    if not isinstance(item, dict):
        raise UnreadableReviewError("object is not a JSON object")
    version, kind = item.get("apiVersion") or "v1", item.get("kind") or "Pod"
    if (version, kind) != ("v1", "Pod"):
        group, _, name = str(version).rpartition("/")
        raise UnreadableReviewError(f"unable to decode {group}/{name}, Kind={kind} into *v1.Pod")
    try:
        _Pod.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = ".".join(map(str, first["loc"]))
        raise UnreadableReviewError(f"Pod.{pointer}: {first['msg']}") from None
    return item


def _refuse(message: str, code: int) -> Json:
    reason = {"reason": "Forbidden"} if code == _FORBIDDEN else {}
    # As Go marshals a Status: metadata is a struct and always written.
    return {"allowed": False, "status": {"metadata": {}, "message": message, **reason, "code": code}}


def _allow(message: str = "") -> Json:
    return {"allowed": True, "status": {"metadata": {}, **({"message": message} if message else {}), "code": 200}}


def _allow_patched(pod: Json, verdict: Admitted) -> Json:
    allowed = _allow(verdict.message)
    if patch := list(list_operations(pod, verdict.pod)):
        allowed |= {"patch": base64.b64encode(orjson.dumps(patch)).decode(), "patchType": "JSONPatch"}
    return allowed


def _encode(review: Mapping[str, Any], uid: str, response: Json) -> bytes:
    """Encode the answer in the version of the review; without one where that could not be read."""
    version = {key: review[key] for key in ("kind", "apiVersion") if key in review}
    written: bytes = orjson.dumps({**version, "response": {"uid": uid, **response}})
    return written
