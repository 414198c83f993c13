"""Replays recorded admission reviews of HAMi v2.10.0 (webhook_cases.jsonl) through our webhook, bytes to bytes."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import jsonpatch
import orjson

from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import Vendors
from scheduler.webhook.admit import AdmissionRules
from scheduler.webhook.review import answer
from tests.conformance.configured import vendors_of
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import pod_object, quota_object


def webhook_differences(case: Case) -> Iterator[Difference]:
    """Everything that we would answer otherwise. A patch is compared by the pod that it makes."""
    rules = AdmissionRules(case["scheduler_name"], case["force_overwrite_default_scheduler"], vendors_of(case))
    ours = orjson.loads(answer(_body(case), rules, _cluster(case, rules.vendors).quotas))
    theirs = case["out_review"]
    response, their_response = ours["response"], theirs["response"]
    facts = {
        "version": (ours.get("apiVersion"), theirs.get("apiVersion")),
        "kind": (ours.get("kind"), theirs.get("kind")),
        "uid": (response["uid"], their_response["uid"]),
        "allowed": (response["allowed"], their_response["allowed"]),
        "status": (_but_message(response), _but_message(their_response)),
        "message": (_message(response), _message(their_response)),
        "patch type": (response.get("patchType"), their_response.get("patchType")),
        "pod": (_patched(case, response), _patched(case, their_response)),
    }
    for about, (mine, their) in facts.items():
        if mine != their:
            yield Difference("", about, mine, their)


def _body(case: Case) -> bytes:
    if "review" in case:
        return orjson.dumps(case["review"])
    body: str = case.get("body", "")
    return body.encode()


def _cluster(case: Case, vendors: Vendors) -> ClusterColumns:
    columns = ClusterColumns(vendors)
    for quota in case.get("quotas") or ():
        columns.apply_quota(quota_object(quota))
    for pod in case.get("running_pods") or ():
        columns.apply_pod(pod_object(pod))
    return columns


def _message(response: Mapping[str, Any]) -> Any:
    return response["status"].get("message")


def _but_message(response: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in response["status"].items() if key != "message"}


def _patched(case: Case, response: Mapping[str, Any]) -> Any:
    """The pod with the patch applied; None where there is no patch."""
    if "patch" not in response:
        return None
    operations = orjson.loads(base64.b64decode(response["patch"]))
    pod = jsonpatch.apply_patch(case["review"]["request"]["object"], operations)
    if "vendor" in case:
        # HAMi asks the vendors in the order of a Go map, and each appends its variables.
        for container in pod["spec"].get("containers", []) + pod["spec"].get("initContainers", []):
            container.get("env", []).sort(key=lambda variable: variable["name"])
    return pod
