"""Replays recorded admission reviews of HAMi v2.10.0 (webhook_cases.jsonl) through our webhook, bytes to bytes."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import jsonpatch
import orjson

from engine.admission.admit import AdmissionRules
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import Vendors
from scheduler.webhook.review import answer
from tests.conformance.configured import read_vendors
from tests.conformance.difference import Case, Difference
from tests.conformance.objects import build_pod, build_quota


def compare_webhook(case: Case) -> Iterator[Difference]:
    """Compare our answer with HAMi's; a patch is compared by the pod that it makes."""
    rules = AdmissionRules(case["scheduler_name"], case["force_overwrite_default_scheduler"], read_vendors(case))
    ours = orjson.loads(answer(_build_body(case), rules, _build_cluster(case, rules.vendors).quotas))
    theirs = case["out_review"]
    response, their_response = ours["response"], theirs["response"]
    facts = {
        "version": (ours.get("apiVersion"), theirs.get("apiVersion")),
        "kind": (ours.get("kind"), theirs.get("kind")),
        "uid": (response["uid"], their_response["uid"]),
        "allowed": (response["allowed"], their_response["allowed"]),
        "status": (_drop_message(response), _drop_message(their_response)),
        "message": (_parse_message(response), _parse_message(their_response)),
        "patch type": (response.get("patchType"), their_response.get("patchType")),
        "pod": (_patch_pod(case, response), _patch_pod(case, their_response)),
    }
    for fact, (mine, their) in facts.items():
        if mine != their:
            yield Difference("", fact, mine, their)


def _build_body(case: Case) -> bytes:
    if "review" in case:
        return orjson.dumps(case["review"])
    body: str = case.get("body", "")
    return body.encode()


def _build_cluster(case: Case, vendors: Vendors) -> ClusterColumns:
    columns = ClusterColumns(vendors)
    for quota in case.get("quotas") or ():
        columns.apply_quota(build_quota(quota))
    for pod in case.get("running_pods") or ():
        columns.apply_pod(build_pod(pod))
    return columns


def _parse_message(response: Mapping[str, Any]) -> Any:
    return response["status"].get("message")


def _drop_message(response: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in response["status"].items() if key != "message"}


def _patch_pod(case: Case, response: Mapping[str, Any]) -> Any:
    """Apply the patch to the pod; None without a patch."""
    if "patch" not in response:
        return None
    operations = orjson.loads(base64.b64decode(response["patch"]))
    pod = jsonpatch.apply_patch(case["review"]["request"]["object"], operations)
    if "vendor" in case:
        # HAMi asks the vendors in the order of a Go map, and each appends its variables.
        for container in pod["spec"].get("containers", []) + pod["spec"].get("initContainers", []):
            container.get("env", []).sort(key=lambda variable: variable["name"])
    return pod
