"""Answers about Kueue's queues in a case that has no pod: people also paste the queue alone."""

from collections.abc import Iterator

from engine.diagnosis.layers.kueue import explain_inactive_queue
from engine.diagnosis.layers.kueue_workloads import CLUSTER_QUEUE, LOCAL_QUEUE
from engine.diagnosis.texts import write_phrase, write_remedy, write_sentence
from engine.snapshot.case_objects import CaseObjects


def iterate_queue_answers(objects: CaseObjects) -> Iterator[str]:
    """Iterate over the queues that take no workloads, each with the cause and what to do."""
    for kind in (CLUSTER_QUEUE, LOCAL_QUEUE):
        for (namespace, name), queue in objects.tables.get(kind, {}).items():
            if obstacle := explain_inactive_queue(kind.partition(".")[0], queue):
                held = {"held": write_phrase("held_queue")}
                obstacle = obstacle._replace(words={**obstacle.words, **held})
                remedy = write_remedy(obstacle, namespace or "<namespace>", name)
                yield f"{write_sentence(obstacle).en} {remedy.en}"
