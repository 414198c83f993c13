"""M11: what callers send is read in time that grows with its length, whichever of its parts is long.

Calls of kube-scheduler, reviews of the API server, and the annotations of pods and nodes.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson
import pytest

from engine.admission.admit import AdmissionRules
from engine.fit.devices.quota import Quotas
from engine.fit.judge.request.pod_request import list_requests
from engine.hami import allocation, registration
from engine.hami.vendors import ONLY_NVIDIA
from scheduler.answering.extender_protocol import MAX_CONTAINERS, UnusableBodyError, read_bind, read_filter
from scheduler.webhook.review import answer
from tests.support.builders.kube_objects import a_container, a_pod
from tests.support.growth import FACTOR, is_linear

SIZE: Final = MAX_CONTAINERS // FACTOR


def filter_fields(**fields: Any) -> None:
    read_filter(orjson.dumps({"Pod": a_pod(), "NodeNames": ["node1"]} | fields))


def read_node_names(size: int) -> None:
    filter_fields(NodeNames=[f"node{number}" for number in range(10 * size)])


def read_one_name_many_times(size: int) -> None:
    filter_fields(NodeNames=["node1"] * 10 * size)


def read_full_nodes(size: int) -> None:
    filter_fields(
        NodeNames=None, Nodes={"items": [{"metadata": {"name": f"node{number}"}} for number in range(10 * size)]}
    )


def read_containers(size: int) -> None:
    pod = a_pod(containers=[a_container(f"c{number}") for number in range(size)])
    filter_fields(Pod=pod)
    list_requests(pod, ONLY_NVIDIA)


def read_call_fields(size: int) -> None:
    filter_fields(**{f"Field{number}": number for number in range(10 * size)})


def a_long_name_in_a_bind(size: int) -> None:
    with pytest.raises(UnusableBodyError):
        read_bind(orjson.dumps({"PodName": "a-." * 100 * size, "PodNamespace": "ns", "PodUID": "u", "Node": "node1"}))


def review_pod(pod: Any) -> None:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "object": pod}}
    answer(orjson.dumps(review), AdmissionRules(), Quotas())


def review_containers(size: int) -> None:
    review_pod(a_pod(containers=[a_container(f"c{number}") for number in range(10 * size)]))


def review_variables(size: int) -> None:
    review_pod(a_pod(containers=[a_container() | {"env": [{"name": f"V{number}"} for number in range(10 * size)]}]))


def review_quantities(size: int) -> None:
    limits = {"nvidia.com/gpu": "1"} | {f"example.com/r{number}": "1" for number in range(size)}
    review_pod(a_pod(containers=[{"name": "c", "resources": {"limits": limits}}]))


def an_allocation(size: int) -> None:
    allocation.decode_devices("GPU-0,NVIDIA,1,1:" * size + ";")
    allocation.decode_devices("GPU-0,NVIDIA,1,1:;" * size)
    with pytest.raises(allocation.AllocationError):
        allocation.decode_devices("," * 10 * size)


def a_registration(size: int) -> None:
    device = {"id": "GPU", "count": 1, "devmem": 1, "devcore": 1, "type": "T"}
    registration.decode_registration(
        orjson.dumps([device | {"id": f"GPU-{number}"} for number in range(size)]).decode()
    )
    registration.decode_registration("".join(f"GPU-{number},1,1,1,T,0,true:" for number in range(size)))


READERS: Final[list[Callable[[int], None]]] = [
    read_node_names, read_one_name_many_times, read_full_nodes, read_containers, read_call_fields,
    a_long_name_in_a_bind, review_containers, review_variables, review_quantities, an_allocation, a_registration,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_m11_time_grows_with_the_input_and_not_with_its_square(read: Callable[[int], None]) -> None:
    assert is_linear(read, SIZE)
