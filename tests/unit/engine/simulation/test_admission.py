"""HAMi's webhook on a pod of a simulation: which scheduler places it, and what changed, in words."""

from typing import Any

import pytest

from engine.fit.devices.quota import Quotas
from engine.hami.vendors import ONLY_NVIDIA
from engine.simulation.admission import AdmittedPod, admit_pod
from tests.support.builders.simulations import a_gpu_pod


def admit(scheduler: str = "", *, has_hami: bool = True, quotas: Quotas | None = None, **limits: Any) -> AdmittedPod:
    pod = a_gpu_pod(**limits)
    if scheduler:
        pod["spec"]["schedulerName"] = scheduler
    return admit_pod(pod, ONLY_NVIDIA, quotas or Quotas(), has_hami=has_hami)


@pytest.mark.parametrize(
    ("scheduler", "placed_by"),
    [("", "hami-scheduler"), ("default-scheduler", "hami-scheduler"), ("my-hami", "my-hami")],
)
def test_a_pod_with_devices_is_placed_by_hami(scheduler: str, placed_by: str) -> None:
    admitted = admit(scheduler, gpu=1, gpumem=100)
    assert (admitted.pod["spec"]["schedulerName"], admitted.is_hamis, admitted.denial) == (placed_by, True, "")


@pytest.mark.parametrize("scheduler", ["volcano", "kai-scheduler", "yunikorn", "koord-scheduler"])
def test_a_scheduler_without_the_extender_is_left_alone(scheduler: str) -> None:
    admitted = admit(scheduler, gpumem=100)
    assert [note.code for note in admitted.notes] == ["ForeignScheduler"]
    assert not admitted.is_hamis
    assert admitted.pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpumem": 100}


def test_without_hami_the_pod_gets_the_values_of_the_api_server_only() -> None:
    admitted = admit(has_hami=False, gpumem=100)
    resources = admitted.pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"nvidia.com/gpumem": 100}, "requests": {"nvidia.com/gpumem": 100}}
    assert (admitted.notes, admitted.is_hamis) == ((), False)


def test_what_the_webhook_adds_is_named() -> None:
    # HAMi: memory without a count gets one device; whole memory without cores gets all cores.
    (note,) = admit(gpumem=100).notes
    assert (note.code, "nvidia.com/gpu: 1" in note.text.en) == ("WebhookAdds", True)
    (note,) = admit(gpu=1).notes
    assert (note.code, "nvidia.com/gpucores: 100" in note.text.en) == ("WebhookAdds", True)
    assert admit(gpu=1, gpumem=100).notes == ()


def test_a_refusal_of_the_webhook_is_a_denial() -> None:
    pod = a_gpu_pod(gpu=1)
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    admitted = admit_pod(pod, ONLY_NVIDIA, Quotas())
    assert admitted.denial == "container c is privileged"


def test_a_quota_is_left_to_the_fit_which_has_its_numbers() -> None:
    quotas = Quotas()
    quotas.apply(
        {"metadata": {"namespace": "default", "name": "q"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "50"}}}
    )
    admitted = admit(quotas=quotas, gpumem=100)
    assert admitted.denial == ""
    assert admitted.pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert admitted.pod["spec"]["schedulerName"] == "hami-scheduler"
