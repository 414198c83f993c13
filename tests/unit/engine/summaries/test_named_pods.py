"""Texts about pods of other namespaces."""

from typing import Any

import pytest
from pydantic import BaseModel

from engine.summaries.messages import list_messages
from engine.summaries.named_pods import HIDDEN_POD, hide_other_pods, hide_pods_in_attempt
from schemas.events import BindOutcome
from schemas.events.summaries import PodWait
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
        ("in team-b/secret-model/main", f"in {HIDDEN_POD}"),
        ("key /registry/pods/team-b/secret-model exists", f"key /{HIDDEN_POD} exists"),
        ("/registry/batch.volcano.sh/jobs/team-b/x", f"/{HIDDEN_POD}"),
        # Of the pod's own namespace.
        ("/registry/pods/team-a/x and team-a/x/main", "/registry/pods/team-a/x and team-a/x/main"),
        ("preempted by team-a/train-1", "preempted by team-a/train-1"),
        ("/api/v1/namespaces/team-a/pods/x/binding", "/api/v1/namespaces/team-a/pods/x/binding"),
        # A name alone is a word.
        ("secret-model of team-b", "secret-model of team-b"),
        # What no pod is.
        ("7/8 CardInsufficientMemory, 0/9 nodes are available", "7/8 CardInsufficientMemory, 0/9 nodes are available"),
        ("dial tcp 10.0.0.1:443: i/o timeout", "dial tcp 10.0.0.1:443: i/o timeout"),
        ("nvidia.com/gpu, node.kubernetes.io/not-ready", "nvidia.com/gpu, node.kubernetes.io/not-ready"),
        ('cannot create resource "pods/binding"', 'cannot create resource "pods/binding"'),
        ("Job/train, /var/lib/x", "Job/train, /var/lib/x"),
        ("nvcr.io/nvidia/cuda:12, registry/minions/node1", "nvcr.io/nvidia/cuda:12, registry/minions/node1"),
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


FOREIGN = "team-b/other-model"


def fill_texts(model: BaseModel) -> dict[str, Any]:
    """Return the model's fields with a foreign pod in every text, list of texts and mapping by text."""
    filled: dict[str, Any] = {}
    for name, value in model:
        if isinstance(value, str):
            filled[name] = f"{value} {FOREIGN}"
        elif isinstance(value, dict):
            filled[name] = {**value, f"held by {FOREIGN}": 1}
        elif isinstance(value, list) and (not value or isinstance(value[0], str)):
            filled[name] = [*value, f"held by {FOREIGN}"]
    return filled


def test_every_field_of_an_attempt_is_redacted_unless_it_is_known_to_hold_no_words() -> None:
    """N6: a field that is added later is redacted by default."""
    bind = BindOutcome(node="node1", bound=False, error=FOREIGN, ended_at=STARTED)
    wait = PodWait(
        models=[], pools=[], nearest_nodes=[], reasons={FOREIGN: 1}, sentence_en=FOREIGN, sentence_zh=FOREIGN
    )
    plain = a_summary()
    hostile = plain.model_copy(update=fill_texts(plain) | {"bind": bind, "wait": wait})
    hidden = hide_pods_in_attempt(hostile)
    named = {name for name, value in hidden if FOREIGN in str(value)}
    ids_and_checked_names = {
        "cluster", "scheduler", "attempt_id", "episode", "may_duplicate", "nodes", "picked_devices", "settings_digest",
        "constraints", "requests", "picked",
    }  # fmt: skip
    assert named <= ids_and_checked_names
    assert hidden.refused_nodes == {f"held by {HIDDEN_POD}": 1}


def test_the_messages_of_an_attempt_name_no_pod_of_another_namespace() -> None:
    """N5: they become events in the pod's own namespace."""
    summary = a_summary().model_copy(update={"error": f"no victim but {FOREIGN}", "ended_at": STARTED})
    texts = [message.message for message in list_messages(summary)]
    assert f"no victim but {HIDDEN_POD}" in texts
    assert not [text for text in texts if FOREIGN in text]
