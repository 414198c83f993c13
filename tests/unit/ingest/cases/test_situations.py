"""Situations of queues, gangs, kubelets, makers of pods and autoscalers, each a file that states its answer first.

``# Subject:`` is what is asked about, ``# Says:`` words that the sentence must have, or that of another obstacle,
``# Never:`` words that none of them has. Texts and objects of devices and webhooks are built from their sources:
Volcano's ``pkg/scheduler/api/devices/nvidia/vgpu``, Koordinator's ``apis/extension/device_share.go``, the webhooks of
HAMi's chart and of Kueue's ``config/components/webhook``.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import yaml

from engine.cases.workloads import find_workloads
from ingest.cases.answers import explain_pod
from ingest.cases.read_case import build_case
from ingest.cases.workload_answers import diagnose_workload

FOLDER: Final = Path(__file__).with_name("situations")
FILES: Final = sorted(FOLDER.glob("*.yaml"))
NOW: Final = datetime(2026, 11, 26, 22, 10, tzinfo=UTC)


def read_head(text: str, mark: str) -> list[str]:
    return [line.removeprefix(f"# {mark}: ") for line in text.splitlines() if line.startswith(f"# {mark}: ")]


def explain(text: str, subject: str) -> str:
    """Explain the subject in one text: its sentence, and those of the other obstacles."""
    case = build_case([*yaml.safe_load_all(text)], (), NOW)
    word, _, name = subject.partition("/")
    if keys := find_workloads(case.objects, word, name) if word != "lab" else ():
        return diagnose_workload(case, keys[0]).sentence.en
    diagnosis = explain_pod(case, subject).diagnosis
    return " ".join([diagnosis.sentence.en, *(obstacle.sentence.en for obstacle in diagnosis.other_obstacles)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_situation_is_answered_with_the_words_stated_first(path: Path) -> None:
    text = path.read_text("utf-8")
    (subject,), words = read_head(text, "Subject"), read_head(text, "Says")
    sentence = explain(text, subject)
    assert words
    assert [part for part in words if part not in sentence] == [], sentence
    assert [part for part in read_head(text, "Never") if part in sentence] == [], sentence


def test_there_are_situations_of_every_layer() -> None:
    names = {path.stem.partition("-")[0] for path in FILES}
    assert names >= {
        "kueue",
        "volcano",
        "kai",
        "koordinator",
        "kubelet",
        "statefulset",
        "deployment",
        "karpenter",
        "webhook",
    }
