"""Words of kinds as ``kubectl`` takes them: singular, plural, short, with a group, in any case."""

import pytest

from engine.cases.workload_words import parse_word


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
