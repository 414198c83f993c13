"""Errors that kubectl prints (the texts of v1.34), and their meaning."""

import stat
import sys
from pathlib import Path

import pytest

from cli.client.kubectl import KubectlTransport, parse_kubectl_problem
from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable, WrongRequest
from cli.client.transport import WatchedChange

FORBIDDEN = (
    'Error from server (Forbidden): pods.schedulerlog.io "train-0" is forbidden: User "ann" cannot get resource '
    '"pods/schedulerlog" in API group "schedulerlog.io" in the namespace "llm"\n'
)
REFUSED = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?\n"
PRINTED = {
    FORBIDDEN: NotAllowed,
    "error: You must be logged in to the server (Unauthorized)\n": NotAllowed,
    "Error from server (NotFound): nothing is recorded of pod llm/x. Is the name right?\n": NotFound,
    "Error from server (NotFound): the server could not find the requested resource\n": Unreachable,
    "Error from server (ServiceUnavailable): the server is currently unable to handle the request\n": Unreachable,
    "Error from server (BadRequest): parameter limit: Input should be greater than 0. GET /docs\n": WrongRequest,
    "Error from server (Expired): continue has expired. Search again\n": WrongRequest,
    "Warning: an old version\nError from server (NotFound): nothing is recorded. Is it?\n": NotFound,
    REFUSED: Unreachable,
    'error: context "nowhere" does not exist\n': WrongRequest,
    "": Unreachable,
}


@pytest.mark.parametrize(("text", "kind"), PRINTED.items())
def test_an_error_of_kubectl_is_a_problem(text: str, kind: type[Problem]) -> None:
    problem = parse_kubectl_problem(text)
    assert type(problem) is kind
    assert problem.cause
    assert problem.next_step


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "The connection to the server localhost:8080 was refused",
            "KUBECONFIG",
        ),
        (
            "Unable to connect to the server: getting credentials: exec: executable gke failed",
            "log in",
        ),
    ],
)
def test_the_next_step_is_about_the_kubeconfig_where_that_is_the_cause(text: str, words: str) -> None:
    assert words in parse_kubectl_problem(text).next_step


def test_our_own_next_step_is_kept() -> None:
    problem = parse_kubectl_problem(
        "Error from server (NotFound): nothing is recorded of pod llm/x. Is the name right?"
    )
    assert problem == NotFound("nothing is recorded of pod llm/x", "Is the name right?")


def test_a_cluster_without_the_aggregated_api_is_named_as_that() -> None:
    problem = parse_kubectl_problem("Error from server (NotFound): the server could not find the requested resource")
    assert "aggregated-api" in problem.next_step


def a_program(folder: Path, code: str) -> str:
    """A program that does ``code`` in place of kubectl."""
    path = folder / "kubectl"
    path.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_kubectl_gets_the_path_and_the_context(tmp_path: Path) -> None:
    kubectl = KubectlTransport(
        "prod", "/a/file", program=a_program(tmp_path, "import json; print(json.dumps({'a': sys.argv[1:]}))")
    )
    path = "/apis/schedulerlog.io/v1alpha1/namespaces/llm/pods/x/schedulerlog/diagnosis?attempt=f00"
    expected = ["--context=prod", "--kubeconfig=/a/file", "get", "--raw", path]
    assert kubectl.get("/namespaces/llm/pods/x/diagnosis", {"attempt": "f00"}) == {"a": expected}


def test_kubectl_posts_its_standard_input(tmp_path: Path) -> None:
    code = "import json; print(json.dumps({'in': sys.stdin.read(), 'a': sys.argv[1:]}))"
    kubectl = KubectlTransport(program=a_program(tmp_path, code))
    answer = kubectl.post("/simulate", b"kind: Pod")
    expected = ["create", "--raw", "/apis/schedulerlog.io/v1alpha1/simulate", "-f", "-"]
    assert answer == {"in": "kind: Pod", "a": expected}


def test_a_stream_gives_its_changes_and_then_the_error(tmp_path: Path) -> None:
    line = '{"type": "ADDED", "object": {"status": "failed"}}'
    code = f"print({line!r}); sys.exit({FORBIDDEN!r})"
    changes = list(KubectlTransport(program=a_program(tmp_path, code)).stream("/pending"))
    assert changes[0] == WatchedChange("ADDED", {"status": "failed"})
    assert [type(item) for item in changes[1:]] == [NotAllowed]


def test_a_machine_without_kubectl_gets_the_next_step(tmp_path: Path) -> None:
    problem = KubectlTransport(program=str(tmp_path / "none")).get("/pending")
    assert isinstance(problem, Unreachable)
    assert "--api-url" in problem.next_step
    assert KubectlTransport(program=str(tmp_path / "none")).get_namespace() == "default"


def test_an_answer_that_is_not_json_is_a_problem(tmp_path: Path) -> None:
    problem = KubectlTransport(program=a_program(tmp_path, "print('<html>')")).get("/pending")
    assert isinstance(problem, Unreachable)
