"""POST /webhook on the scheduler's own app: the quotas are those of the cluster that it follows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from engine.admission.admit import AdmissionRules
from runtime.http.bodies import Bodies
from scheduler.http.app import NotReadyError, create_app
from scheduler.webhook.review import answer
from tests.support.harness.scheduler_app import Serving

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"namespace": "default", "name": "quota"},
    "spec": {"hard": {"limits.nvidia.com/gpumem": "2000"}},
}


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    serving = Serving(tmp_path, QUOTA)
    app = create_app(
        serving.scheduler,
        serving.metrics,
        dict,
        Bodies(10_000),
        review=lambda body: answer(body, AdmissionRules(), serving.columns.quotas),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scheduler") as client:
        yield client
    await serving.close()


def a_review(memory: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default"}, "spec": spec}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": pod}}


async def test_a_review_is_answered_with_the_quotas_of_the_cluster(http: httpx.AsyncClient) -> None:
    within, beyond = [await http.post("/webhook", json=a_review(memory)) for memory in (2000, 2001)]
    assert within.json()["response"]["allowed"]
    assert beyond.json()["response"]["status"]["message"] == "exceeding resource quota"


async def test_a_review_without_a_body_is_answered_as_hami_does(http: httpx.AsyncClient) -> None:
    response = await http.post("/webhook")
    assert (response.status_code, response.json()["response"]["status"]["code"]) == (200, 400)


async def test_a_review_that_is_too_long_is_refused(http: httpx.AsyncClient) -> None:
    assert (await http.post("/webhook", content=b" " * 10_001)).status_code == 413


async def test_a_scheduler_without_webhook_has_no_such_route(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    assert (await serving.http.post("/webhook", content=orjson.dumps(a_review(1)))).status_code == 404
    await serving.close()


async def test_l7_until_quotas_are_listed_the_webhook_is_not_ready(tmp_path: Path) -> None:
    serving = Serving(tmp_path, QUOTA)

    def review(_: bytes) -> bytes:
        raise NotReadyError("resourcequotas are being listed")

    app = create_app(serving.scheduler, serving.metrics, dict, Bodies(10_000), review=review)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scheduler") as client:
        response = await client.post("/webhook", json=a_review(1))
    assert (response.status_code, response.headers["content-type"]) == (503, "application/json")
    # https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
    assert response.json() == {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable",
        "message": "resourcequotas are being listed", "code": 503,
    }  # fmt: skip
    await serving.close()
