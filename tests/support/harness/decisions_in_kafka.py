"""Check that Kafka has what a scheduler answered."""

from schemas.codec.records import decode
from schemas.events import AttemptConcluded
from tests.support.harness.scheduler_process import Read


def find_lacking(reads: list[Read], pods: list[str]) -> dict[str, str]:
    """Find what Kafka does not have of the pods' attempts: a conclusion, and every record that it counts."""
    ids: dict[str, set[str]] = {}
    ended: dict[str, list[AttemptConcluded]] = {}
    for read in reads:
        pod = read.key.decode()
        ids.setdefault(pod, set()).add(read.get_header("ce_id"))
        event = decode(read.value, read.headers)
        if isinstance(event, AttemptConcluded):
            ended.setdefault(pod, []).append(event)
    lacks = {pod: _describe_lacking(ids.get(pod, set()), ended.get(pod, [])) for pod in pods}
    return {pod: lack for pod, lack in lacks.items() if lack}


def _describe_lacking(ids: set[str], ended: list[AttemptConcluded]) -> str:
    if len({event.id for event in ended}) != 1:
        return f"{len(ended)} conclusions"
    written = ended[0]
    wanted = {f"{written.attempt_id}/devices/{part}" for part in range(written.device_records)}
    wanted |= {f"{written.attempt_id}/nodes/{part}" for part in range(written.node_records)}
    return ", ".join(sorted(wanted - ids))
