"""Consumer of the pods topic: what observations say of pods that wait, for the watches of pending pods."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from api.memory.topic_follower import TopicFollower
from api.memory.wait_log import OF_PODS, WaitLog
from engine.diagnosis.waiting import derive_wait_without_attempt
from engine.summaries.foreign_namespaces import KnownNamespaces
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.records import decode
from schemas.documents.pod_states import (
    PodStateDocument,
    derive_state_after_observation,
    derive_state_of_workload,
)
from schemas.events import PodObserved, WorkloadObserved
from schemas.topics import PODS

log = logging.getLogger(__name__)


class PodsTopic(TopicFollower):
    """Consumer that fills ``waits``. ``max_records`` bounds the replay, over all partitions.

    The watcher observes a waiting pod again every ten minutes, so that memory has it even after a long silence.
    """

    def __init__(self, kafka: KafkaConnection, waits: WaitLog, namespaces: KnownNamespaces, max_records: int) -> None:
        """Append to ``waits``, and note ``namespaces``."""
        super().__init__(kafka, PODS, max_records)
        self._waits, self._namespaces = waits, namespaces

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int]) -> None:
        """Begin a session at ``offsets``; in the partitions ``jumped`` it does not continue the previous session."""
        self._waits.begin(offsets, jumped, OF_PODS)

    def take(self, record: Any) -> None:
        """Put a record into memory."""
        state = self._read_state(record)
        if state:
            self._namespaces.add([state.fields["namespace"]])
        self._waits.read_observation(record.partition, record.offset, state)

    def _read_state(self, record: Any) -> PodStateDocument | None:
        self.state.records += 1
        event = decode(record.value, record.headers)
        match event:
            case PodObserved():
                return derive_state_after_observation(event, derive_wait_without_attempt(event))
            case WorkloadObserved():
                return derive_state_of_workload(event)
        self.state.rejected += 1
        log.debug("pods topic: skipped a record, not an observation: %s", event)
        return None
