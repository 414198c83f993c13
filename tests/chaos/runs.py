"""One run: pods, a fault, time to recover; then everything accepted is compared with everything visible."""

import json
import random
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

from tests.chaos import ledger, published, states
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.index_outages import half_of_the_time
from tests.chaos.ledger import Verdict
from tests.chaos.load import Load

CALM_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Outcome:
    fault: str
    seed: int
    answered: int
    records: int
    partitions: int
    """Partitions that have records of the run."""
    verdict: Verdict
    calm_seconds: float
    """From the end of the fault until everything was visible."""


def run(
    ground: Ground,
    name: str,
    seed: int,
    fault: Fault | None = None,
    calm_seconds: float = CALM_SECONDS,
    *,
    has_outages: bool = False,
    pods_per_second: float = 25,
) -> Outcome:
    """Run a fault of ``FAULTS``, or one of the caller, in a new namespace. One worker runs at the end.

    ``has_outages``: meanwhile OpenSearch does not answer half of the time.
    """
    namespace, chance = f"chaos-{seed}", random.Random(seed)
    if not ground.processes.is_running("worker"):
        ground.start_worker()
    ground.wait_ready("worker")
    outages = half_of_the_time(ground, random.Random(seed)) if has_outages else nullcontext()
    with outages, Load(ground.get_url("scheduler"), namespace, seed, pods_per_second) as load:
        (fault or FAULTS[name])(ground, load, chance)
    began = time.monotonic()
    verdict, records, partitions = _wait_for_verdict(ground, load, namespace, calm_seconds)
    return Outcome(name, seed, len(load.answers), records, partitions, verdict, time.monotonic() - began)


def _wait_for_verdict(ground: Ground, load: Load, namespace: str, seconds: float) -> tuple[Verdict, int, int]:
    """Return the verdict when it is exact, or the last one at the deadline; with numbers of records and partitions."""
    deadline = time.monotonic() + seconds
    pods = sorted({answer.pod for answer in load.answers} - load.unanswered)
    while True:
        accepted = ledger.read(ground.ledger)
        decisions = ledger.list_decisions(namespace, accepted)
        wanted = len({entry.attempt for entry in decisions})
        if ground.view.count_attempts(namespace) >= wanted or time.monotonic() > deadline:
            seen = ground.view.read_seen(namespace, pods)
            verdict = _compare(decisions, load, seen)
            epochs = {run.epoch for run in states.list_judging_runs(decisions)}
            seen_states = ground.view.read_states(epochs, namespace, pods)
            # A node's devices may change, and so its state, while the topics are being read.
            meanwhile = ledger.read(ground.ledger)
            states.compare(
                accepted, decisions, seen_states, verdict,
                accepted_meanwhile=meanwhile, may_be_more=bool(load.unanswered),
            )  # fmt: skip
            if verdict.is_exact or time.monotonic() > deadline:
                return verdict, len(decisions), seen.partitions
            time.sleep(2)  # a comparison reads every topic, and takes the time of those that are compared
        time.sleep(0.3)


def _compare(accepted: list[ledger.Entry], load: Load, seen: ledger.Seen) -> Verdict:
    """Compare, where all or nothing may be visible of pods without an answer that the spool accepted."""
    unanswered = {f"default/{load.namespace}/{pod}" for pod in load.unanswered}
    answered = [entry for entry in accepted if entry.key not in unanswered]
    latest = {answer.pod: answer for answer in load.answers if answer.pod not in load.unanswered}
    verdict = ledger.compare(answered, latest.values(), _drop_unanswered(seen, load.unanswered), load.garbage)
    ledger.compare_visible([entry for entry in accepted if entry.key in unanswered], seen, verdict)
    judged = {id_: value for id_, value in seen.decisions.items() if "/devices/" in id_}
    verdict.different += published.compare_topics(seen.topics, seen.attempts, seen.indexed_trends, judged)
    return verdict


def _drop_unanswered(seen: ledger.Seen, pods: set[str]) -> ledger.Seen:
    """Drop the pods without an answer, of which everything or nothing may be visible."""
    if not pods:
        return seen
    dropped = {attempt for attempt, document in seen.attempts if document["pod"] in pods}
    dropped |= {id_.split("/", 1)[0] for id_, value in seen.decisions.items() if _parse_pod(value) in pods}
    return replace(
        seen,
        decisions={id_: value for id_, value in seen.decisions.items() if id_.split("/", 1)[0] not in dropped},
        attempts=[(attempt, document) for attempt, document in seen.attempts if attempt not in dropped],
        devices={id_: document for id_, document in seen.devices.items() if document["attempt_id"] not in dropped},
        summaries=[summary for summary in seen.summaries if summary["attempt_id"] not in dropped],
        messages=[(id_, value) for id_, value in seen.messages if value["attempt_id"] not in dropped],
    )


def _parse_pod(value: bytes) -> str:
    return str(json.loads(value)["pod"]["name"])
