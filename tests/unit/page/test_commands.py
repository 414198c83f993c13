import shlex
from typing import NoReturn

import pytest
from typer import Exit
from typer.testing import CliRunner

from api.http.aggregated.translation import translate_path
from cli.client.transport import NO_QUERY, Query
from cli.client.url import UrlTransport
from cli.command import app
from page.commands import write_curl, write_kubectl, write_kubectl_simulation, write_terminal_command

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
    command = write_kubectl(f"/api/v1{path}").removeprefix("kubectl get --raw ")
    translated = translate_path(command)
    assert translated
    assert translated.path == f"/api/v1{path}"


def test_kubectl_can_ask_its_own_cluster_alone() -> None:
    assert write_kubectl("/api/v1/clusters/b/pending") == ""


def test_a_query_is_kept_and_quoted_for_the_shell() -> None:
    assert write_kubectl("/api/v1/findings?node=a&limit=5").endswith(
        "'/apis/schedulerlog.io/v1alpha1/findings?node=a&limit=5'"
    )
    assert write_curl("http://h:1", "/api/v1/pending?q=a'b", has_token=False) == (
        "curl 'http://h:1/api/v1/pending?q=a'\"'\"'b'"
    )


def test_curl_takes_the_token_from_the_shell() -> None:
    assert write_curl("http://h", "/x", has_token=True) == 'curl -H "Authorization: Bearer $TOKEN" http://h/x'


def test_a_pod_is_sent_to_the_same_answer() -> None:
    assert write_curl("http://h", "/api/v1/simulate", has_token=False, file="pod.yaml") == (
        "curl -H 'Content-Type: application/yaml' --data-binary @pod.yaml http://h/api/v1/simulate"
    )
    command = write_kubectl_simulation("/api/v1/simulate", "llm", "pod.yaml")
    raw, file = command.removeprefix("kubectl create --raw ").split(" -f ")
    assert translate_path(raw) == ("/api/v1/simulate", "llm")
    assert file == "pod.yaml"
    assert write_kubectl_simulation("/api/v1/clusters/b/simulate", "llm", "pod.yaml") == ""


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (f"{POD}/diagnosis?exclusion=false", f"{POD}/diagnosis"),
        (f"{POD}/diagnosis?attempt=f00&exclusion=false", f"{POD}/diagnosis?attempt=f00"),
        (f"{POD}/schedulerlog/history?limit=5", f"{POD}/schedulerlog/history?limit=5"),
        ("/nodes/n1", "/nodes/n1/occupancy"),
        ("/nodes/n1?at=2h", "/nodes/n1/occupancy?at=2h"),
        ("/schedulerlogs?obstacle=NumaNotFit&since=2h", "/schedulerlogs?obstacle=NumaNotFit&since=2h"),
        ("/pending?group_by=pod&obstacle=NumaNotFit", "/pending?group_by=pod&obstacle=NumaNotFit"),
        ("/pending?group_by=obstacle&reason=node+unregistered", "/pending?group_by=obstacle&reason=node unregistered"),
        ("/schedulerlogs?q=a%27b&namespace=llm&status=failed", "/schedulerlogs?q=a'b&namespace=llm&status=failed"),
        ("/trends?by=pool&since=7d", "/trends?by=pool&since=7d"),
        ("/reports/failures?lang=zh&namespace=llm", "/reports/failures?lang=zh&namespace=llm"),
    ],
)
def test_a_terminal_asks_for_the_same_answer(path: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = list[tuple[str, dict[str, str]]]()

    def get(_: UrlTransport, path: str, query: Query = NO_QUERY) -> NoReturn:
        requests.append((path, {name: value for name, value in query.items() if value}))
        raise Exit(0)

    monkeypatch.setattr(UrlTransport, "get", get)
    program, *words = shlex.split(write_terminal_command(f"/api/v1{path}"))
    assert program == "schedulerlog"
    CliRunner().invoke(app, [*words, "--api-url", "http://127.0.0.1:9"], catch_exceptions=False)
    bare, _, query = command.partition("?")
    assert requests[0][0] == bare
    expected = dict(pair.split("=") for pair in query.split("&") if pair)
    assert expected.items() <= requests[0][1].items()
    # What the command adds are its own defaults, which the API has too, and how many rows it shows.
    assert requests[0][1].keys() - expected.keys() <= {"limit", "by", "count", "since", "group_by", "lang"}


@pytest.mark.parametrize("path", ["/clusters/b/pending", "/pending?queue=q", "/findings", "/trends?interval=5m"])
def test_a_terminal_has_no_command_with_other_filters(path: str) -> None:
    assert write_terminal_command(f"/api/v1{path}") == ""
