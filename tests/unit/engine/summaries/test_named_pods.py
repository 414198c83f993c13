"""Texts about pods of other namespaces."""

import pytest

from engine.summaries.named_pods import HIDDEN_POD, hide_other_pods, hide_pods_in_attempt
from schemas.events import BindOutcome
from tests.support.builders.events import STARTED, a_summary


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("preempted by team-b/secret-model", f"preempted by {HIDDEN_POD}"),
        ("held by pod team-b/secret-model: locked", f"held by pod {HIDDEN_POD}: locked"),
        ('pod "team-b/secret-model" has it.', f'pod "{HIDDEN_POD}" has it.'),
        ("victims [team-b/a.b team-c/d]", f"victims [{HIDDEN_POD} {HIDDEN_POD}]"),
        ("等待 team-b/secret-model，然后重试", f"等待 {HIDDEN_POD}，然后重试"),
        ("等待team-b/secret-model", f"等待{HIDDEN_POD}"),
        ('Post "https://10.0.0.1/api/v1/namespaces/team-b/pods/x/binding"', f'Post "https://10.0.0.1/api/v1/{HIDDEN_POD}/binding"'),
        # Of the pod's own namespace.
        ("preempted by team-a/train-1", "preempted by team-a/train-1"),
        ("/api/v1/namespaces/team-a/pods/x/binding", "/api/v1/namespaces/team-a/pods/x/binding"),
        # A name alone is a word.
        ("secret-model of team-b", "secret-model of team-b"),
        # What no pod is.
        ("7/8 CardInsufficientMemory, 0/9 nodes are available", "7/8 CardInsufficientMemory, 0/9 nodes are available"),
        ("dial tcp 10.0.0.1:443: i/o timeout", "dial tcp 10.0.0.1:443: i/o timeout"),
        ("nvidia.com/gpu, node.kubernetes.io/not-ready", "nvidia.com/gpu, node.kubernetes.io/not-ready"),
        ('cannot create resource "pods/binding"', 'cannot create resource "pods/binding"'),
        ("Job/train, /var/lib/x, a/b/c", "Job/train, /var/lib/x, a/b/c"),
    ],
)  # fmt: skip
def test_a_reference_to_a_pod_of_another_namespace_is_hidden(text: str, redacted: str) -> None:
    assert hide_other_pods(text, "team-a") == redacted


def test_an_attempt_is_changed_only_where_it_names_others() -> None:
    bind = BindOutcome(node="node1", bound=False, error="refused", ended_at=STARTED)
    plain = a_summary().model_copy(update={"bind": bind})
    assert hide_pods_in_attempt(plain) is plain
    named = plain.model_copy(
        update={
            "error": "no victim but team-b/x",
            "scheduler_message": "by team-b/y",
            "bind": bind.model_copy(update={"error": f"{plain.pod} waits for team-b/z"}),
        }
    )
    hidden = hide_pods_in_attempt(named)
    assert (hidden.error, hidden.scheduler_message) == (f"no victim but {HIDDEN_POD}", f"by {HIDDEN_POD}")
    assert hidden.bind
    assert hidden.bind.error == f"{plain.pod} waits for {HIDDEN_POD}"
