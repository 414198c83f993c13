"""Subjects as people write them: a pod, or a workload by the word of its kind."""

import pytest

from cli.terminal.subjects import Subject, parse_subject


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("train-0", Subject("", "", "train-0")),
        ("ml/train-0", Subject("ml", "", "train-0")),
        ("pod/train-0", Subject("", "", "train-0")),
        ("ml/pod/train-0", Subject("ml", "", "train-0")),
        ("job/train", Subject("", "job", "train")),
        ("jobs.batch/train", Subject("", "jobs.batch", "train")),
        ("ml/deployment/web", Subject("ml", "deployment", "web")),
        ("Deployments/web", Subject("", "Deployments", "web")),
    ],
)
def test_a_subject_is_a_pod_or_a_workload(text: str, subject: Subject) -> None:
    assert parse_subject(text) == subject
