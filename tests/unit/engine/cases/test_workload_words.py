"""Words of kinds as ``kubectl`` takes them: singular, plural, short, with a group, in any case."""

import pytest

from engine.cases.workload_words import Subject, parse_subject, parse_word


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("pytorchjob", ("PyTorchJob.kubeflow.org",)),
        ("PyTorchJobs", ("PyTorchJob.kubeflow.org",)),
        ("pytorchjobs.kubeflow.org", ("PyTorchJob.kubeflow.org",)),
        ("PyTorchJob.KubeFlow", ("PyTorchJob.kubeflow.org",)),
        ("pytorchjob.batch", ()),
        ("trainjobs", ("TrainJob.trainer.kubeflow.org",)),
        ("trainjob.trainer", ("TrainJob.trainer.kubeflow.org",)),
        ("default", ()),
        ("", ()),
    ],
)
def test_a_word_names_its_kinds(word: str, kinds: tuple[str, ...]) -> None:
    assert parse_word(word) == kinds


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
