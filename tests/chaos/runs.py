"""One run: pods, a fault, calm, and then everything that was accepted against everything that can be seen."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import ledger
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.ledger import Verdict
from tests.chaos.load import Load

CALM_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Outcome:
    fault: str
    seed: int
    answered: int
    records: int
    verdict: Verdict
    calm_seconds: float
    """From the fault's end until everything was there."""


def run(
    ground: Ground, name: str, seed: int, fault: Fault | None = None, calm_seconds: float = CALM_SECONDS
) -> Outcome:
    """A fault of ``FAULTS``, or one of the caller's own, in a namespace of its own. Leaves one worker running."""
    namespace, chance = f"chaos-{seed}", random.Random(seed)
    if not ground.processes.is_running("worker"):
        ground.start_worker()
    ground.wait_ready("worker")
    with Load(ground.url("scheduler"), namespace, seed) as load:
        (fault or FAULTS[name])(ground, load, chance)
    began = time.monotonic()
    verdict, records = _settled(ground, load, namespace, calm_seconds)
    return Outcome(name, seed, len(load.answers), records, verdict, time.monotonic() - began)


def _settled(ground: Ground, load: Load, namespace: str, seconds: float) -> tuple[Verdict, int]:
    """The verdict as soon as it is exact, or what it is when the time is up."""
    deadline = time.monotonic() + seconds
    pods = [answer.pod for answer in load.answers]
    while True:
        entries = _answered(ground.ledger, namespace, load)
        wanted = len({entry.attempt for entry in entries})
        if ground.attempts(namespace) >= wanted or time.monotonic() > deadline:
            seen = ground.seen(namespace, pods)
            verdict = ledger.compare(entries, load.answers, _without(seen, load.unanswered), load.garbage)
            if verdict.is_exact or time.monotonic() > deadline:
                return verdict, len(entries)
        time.sleep(0.3)


def _answered(path: Path, namespace: str, load: Load) -> list[ledger.Entry]:
    unanswered = {f"{namespace}/{pod}" for pod in load.unanswered}
    return [entry for entry in ledger.read(path, namespace) if entry.key not in unanswered]


def _without(seen: ledger.Seen, pods: set[str]) -> ledger.Seen:
    """What is seen of pods that nobody was answered about may be whole or not there."""
    if not pods:
        return seen
    gone = {attempt for attempt, document in seen.attempts if document["pod"] in pods}
    gone |= {each.split("/", 1)[0] for each, value in seen.decisions.items() if _pod(value) in pods}
    return ledger.Seen(
        {each: value for each, value in seen.decisions.items() if each.split("/", 1)[0] not in gone},
        [(attempt, document) for attempt, document in seen.attempts if attempt not in gone],
        {each: document for each, document in seen.devices.items() if document["attempt_id"] not in gone},
        [each for each in seen.summaries if each["attempt_id"] not in gone],
        [(each, value) for each, value in seen.messages if value["attempt_id"] not in gone],
        seen.schedulerlogs,
        seen.dead_letters,
    )


def _pod(value: bytes) -> str:
    return str(json.loads(value)["pod"]["name"])
