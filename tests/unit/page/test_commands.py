import pytest

from api.aggregated.paths import own_path
from page.commands import as_curl, as_kubectl, simulated_by_kubectl

POD = "/namespaces/llm/pods/a"


@pytest.mark.parametrize(
    "path",
    [
        f"{POD}/schedulerlog",
        f"{POD}/schedulerlog/history",
        f"{POD}/diagnosis",
        "/nodes/n1",
        "/nodes/n1/occupancy",
        "/pending",
        "/attempts/f00",
        "/attempts/f00/comparison",
        "/findings",
        "/trends",
        "/reports/failures",
    ],
)
def test_kubectl_asks_for_the_same_answer(path: str) -> None:
    asked = as_kubectl(f"/api/v1{path}").removeprefix("kubectl get --raw ")
    found = own_path(asked)
    assert found
    assert found.path == f"/api/v1{path}"


def test_kubectl_can_ask_its_own_cluster_alone() -> None:
    assert as_kubectl("/api/v1/clusters/b/pending") == ""


def test_a_query_is_kept_and_quoted_for_the_shell() -> None:
    assert as_kubectl("/api/v1/findings?node=a&limit=5").endswith(
        "'/apis/schedulerlog.io/v1alpha1/findings?node=a&limit=5'"
    )
    assert as_curl("http://h:1", "/api/v1/pending?q=a'b", has_token=False) == (
        "curl 'http://h:1/api/v1/pending?q=a'\"'\"'b'"
    )


def test_curl_takes_the_token_from_the_shell() -> None:
    assert as_curl("http://h", "/x", has_token=True) == 'curl -H "Authorization: Bearer $TOKEN" http://h/x'


def test_a_pod_is_sent_to_the_same_answer() -> None:
    assert as_curl("http://h", "/api/v1/simulate", has_token=False, file="pod.yaml") == (
        "curl -H 'Content-Type: application/yaml' --data-binary @pod.yaml http://h/api/v1/simulate"
    )
    command = simulated_by_kubectl("/api/v1/simulate", "llm", "pod.yaml")
    raw, file = command.removeprefix("kubectl create --raw ").split(" -f ")
    assert own_path(raw) == ("/api/v1/simulate", "llm")
    assert file == "pod.yaml"
    assert simulated_by_kubectl("/api/v1/clusters/b/simulate", "llm", "pod.yaml") == ""
