"""Paths of the API server."""

from ingest.sources.pod_log import PodContainer
from kube.resources import PODS, Key


def test_l4_a_name_is_one_part_of_a_path_whatever_it_holds() -> None:
    assert PODS.item(Key("a/b", "../c?d")) == "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd"
    assert PodContainer("a/b", "../c").path == "/api/v1/namespaces/a%2Fb/pods/..%2Fc/log"
