"""Paths of the API server."""

import pytest

from ingest.sources.pod_log import PodContainer
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.resources import NODES, PODS, Key


def test_l4_a_name_is_one_part_of_a_path_whatever_it_holds() -> None:
    assert PODS.build_object_path(Key("a/b", "../c?d")) == "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd"
    assert PodContainer("a/b", "../c").path == "/api/v1/namespaces/a%2Fb/pods/..%2Fc/log"


@pytest.mark.parametrize("dots", [".", ".."])
def test_l4_no_object_has_a_name_that_is_a_step_through_the_path(dots: str) -> None:
    for resource, key in ((PODS, Key("default", dots)), (PODS, Key(dots, "p")), (NODES, Key("", dots))):
        with pytest.raises(KubeApiError) as error:
            resource.build_object_path(key, "binding")
        assert error.value.is_missing
