"""Collections that a diagnosis needs: webhooks are read only for a pod that lacks what they write."""

from typing import Any

import pytest

from engine.snapshot.needed_kinds import WEBHOOKS, list_webhooks

QUEUE = {"kueue.x-k8s.io/queue-name": "night"}


def a_pod(scheduler: str, labels: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    containers = [
        {"name": "c", "resources": {"limits": {f"nvidia.com/{name}": value for name, value in limits.items()}}}
    ]
    return {"metadata": {"labels": labels or {}}, "spec": {"schedulerName": scheduler, "containers": containers}}


@pytest.mark.parametrize(
    "pod", [a_pod("default-scheduler", gpu="1", gpumem="3000"), a_pod("", gpumem="3000"), a_pod("volcano", QUEUE)]
)
def test_webhooks_are_read_for_a_pod_that_lacks_what_they_write(pod: dict[str, Any]) -> None:
    assert list_webhooks(pod) == list(WEBHOOKS)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("hami-scheduler", gpu="1", gpumem="3000"),
        a_pod("default-scheduler", gpu="1"),
        a_pod("default-scheduler", {**QUEUE, "kueue.x-k8s.io/managed": "true"}),
    ],
)
def test_webhooks_are_not_read_for_other_pods(pod: dict[str, Any]) -> None:
    assert list_webhooks(pod) == []
