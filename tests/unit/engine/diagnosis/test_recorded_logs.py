"""Pods that HAMi v2.10.0 refused, from its own logs (tests/conformance/cases/logs), read by the reader of HAMi's log.

A log below ``-v=5`` names no devices, so there are no numbers of what is free. Expected are the lines of the logs.
"""

from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from schemas.events import AttemptSummarized
from tests.support.builders.hami_lines import read, summarize_attempts

LOGS = Path("tests/conformance/cases/logs")


@cache
def read_attempts(log: str) -> list[AttemptSummarized]:
    return summarize_attempts(read(*(LOGS / log).read_bytes().splitlines()))


@pytest.mark.parametrize(
    ("log", "pod", "code", "sentence"),
    [
        (
            "013.log",
            "batch/train-601",
            "CardTimeSlicingExhausted",
            "On 1 of 3 nodes, the devices are shared by as many containers as they may be.",
        ),
        # The second of its two containers asks for 90,000 MiB; the third node refused the first one, of 20,000.
        ("013.log", "default/infer-603", "CardInsufficientMemory", "2 of 3 nodes lack memory: 90,000 MiB asked."),
        (
            "015.log",
            "ml/job-small-705",
            "FilteringFailed",
            "hami-scheduler found no node that fits, and no record says why of any node.",
        ),
        (
            "015.log",
            "ml/notebook-small-703",
            "FilterError",
            (
                "hami-scheduler ended the attempt with an error before it judged a node: "
                'pods "notebook-small-703" not found.'
            ),
        ),
        (
            "031.log",
            "ml/job-small-1501",
            "BindingFailed",
            'Node no-such-node was chosen, and the pod could not be bound to it: node "no-such-node" not found.',
        ),
        (
            "031.log",
            "ml/train-small-1502",
            "node lock contention",
            "Node gpu-node-02 was chosen, and another pod held its lock: ml/job-small-1501.",
        ),
        ("042.log", "ml/notebook-small-2005", "node unregistered", "The scheduler knows no devices of the only node."),
    ],
)
def test_what_hamis_log_says_of_a_pod(log: str, pod: str, code: str, sentence: str) -> None:
    mine = [attempt for attempt in read_attempts(log) if str(attempt.pod) == pod]
    diagnoses = [
        diagnose(
            DiagnosisFacts(
                "default", attempt.pod.namespace, attempt.pod.name, attempt.started_at + timedelta(minutes=1), attempt
            )
        )
        for attempt in mine
    ]
    assert (code, sentence) in {(answer.obstacle.code, answer.sentence.en) for answer in diagnoses if answer.obstacle}
