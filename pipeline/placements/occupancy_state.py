"""Pods, nodes, workloads and schedulers in memory, and the documents that follow from an input. Pure.

Everything else is in the index, in documents that contain the facts they were derived from: ``load_pod`` and
``load_node`` read them back, and the state is then as if the subject had never left memory.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

import orjson

from engine.summaries.node_history import NodeKey
from engine.summaries.occupancy import DerivedPlacement, Facts
from engine.summaries.overcommit import Holding, find_overcommitments, list_totals
from pipeline.placements import occupancy_queries
from pipeline.placements.device_holdings import DeviceHoldings, derive_holdings
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput, RefusedAgain, to_bind_fact
from pipeline.placements.observation_dedup import ObservationDigest, RecentObservations, digest_of
from pipeline.placements.occupancy_queries import StoredPlacement
from pipeline.placements.subjects import (
    DocumentKey,
    ObservedKey,
    PodKey,
    PodState,
    Subject,
    TrackedNode,
    WrittenDocument,
    get_subject,
    to_observed_key,
    to_pod_key,
)
from pipeline.placements.waits import Waits
from pipeline.sinks.bulk import Document, encode_source
from schemas.documents.forecasts import build_forecast_document
from schemas.documents.observations import Observed, build_observation_document, find_observation_kind
from schemas.documents.placements import build_placement_document, read_placement
from schemas.events import (
    FindingReported,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    PodObserved,
    SchedulerObserved,
    WorkloadObserved,
)
from schemas.forecasts import StartForecast
from schemas.ids import count_microseconds
from schemas.indices import OBSERVATIONS, OCCUPANCY


class DocumentOrigin(NamedTuple):
    """Source of a document: its record for a dead letter, and its subject to read again after a conflict."""

    record: object
    subject: Subject


def make_observation_document(event: Observed, digest: str, origin: DocumentOrigin) -> Document:
    json = encode_source(build_observation_document(event, digest))
    # Without a version: an observation never changes, so the index keeps the first document of an id.
    return Document(OBSERVATIONS.name(event.observed_at), event.id, json, None, origin)


def digest_content(document: object) -> bytes:
    """Digest a document; equal for equal documents, because the index may return their fields in another order."""
    return blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


MAX_PODS: Final = 50_000
MAX_OBSERVED: Final = 10_000
"""Limit of workloads and schedulers in memory."""


class OccupancyState:
    def __init__(self, max_pods: int = MAX_PODS) -> None:
        self.holdings = DeviceHoldings()
        self._max_pods = max_pods
        self._pods: OrderedDict[PodKey, PodState] = OrderedDict()
        self._nodes: dict[NodeKey, TrackedNode] = {}
        self._observed: OrderedDict[ObservedKey, RecentObservations] = OrderedDict()
        self.waits = Waits()
        self._version = 0

    def __len__(self) -> int:
        """Count the pods in memory."""
        return len(self._pods)

    def is_missing(self, subject: Subject) -> bool:
        if isinstance(subject, PodKey):
            return subject not in self._pods
        return subject not in (self._nodes if isinstance(subject, NodeKey) else self._observed)

    def load_pod(
        self,
        key: PodKey,
        documents: Iterable[StoredPlacement],
        observations: Iterable[tuple[ObservationDigest, Observed]],
        forecasts: Iterable[StartForecast] = (),
    ) -> None:
        """Take the pod as the index has it."""
        pod = PodState(Facts(key.cluster, key.namespace, key.name), RecentObservations())
        for forecast in forecasts:
            pod.facts.add_forecast(forecast)
        for digest, event in sorted(observations, key=lambda pair: pair[0]):
            pod.recent.remember(digest)
            # The process may have been killed after the observation and before the placement were written.
            if isinstance(event, PodObserved):
                pod.learn(event)
        for document in documents:
            if facts := occupancy_queries.decode_facts(document):
                pod.written[DocumentKey(document.index, document.id)] = WrittenDocument(
                    document.version, digest_content(document.source)
                )
                for fact in facts:
                    pod.facts.add(fact)
                for mark in occupancy_queries.decode_marks(document):
                    pod.facts.mark(mark)
                pod.resume(read_placement(document.id, document.source))
        self._pods[key] = pod
        self.holdings.put(key, derive_holdings(pod.facts.derive_placements()))

    def load_node(self, node: NodeKey, observations: Iterable[tuple[ObservationDigest, Observed]]) -> None:
        """Take the node as the index has it."""
        state = self._nodes[node] = TrackedNode()
        for digest, event in sorted(observations, key=lambda pair: pair[0]):
            state.recent.setdefault(_stream(event), RecentObservations()).remember(digest)
            if isinstance(event, NodeRegistered):
                state.register(event)

    def load_observed(self, key: ObservedKey, observations: Iterable[tuple[ObservationDigest, Observed]]) -> None:
        """Take the workload or scheduler as the index has it."""
        recent = self._observed[key] = RecentObservations()
        for digest, _ in sorted(observations, key=lambda pair: pair[0]):
            recent.remember(digest)

    def load_holdings(self, documents: Iterable[StoredPlacement]) -> None:
        """Take what pods hold that are not in memory: it counts for overcommitment all the same."""
        by_pod: dict[PodKey, list[Holding]] = {}
        for document in documents:
            if holding := occupancy_queries.decode_holding(document):
                by_pod.setdefault(to_pod_key(holding.placement.cluster, holding.placement.pod), []).append(holding)
        for pod, holdings in by_pod.items():
            self.holdings.put(pod, holdings)

    def apply(self, item: PlacementInput, now: datetime, record: object = None) -> list[Document]:
        """Apply the input; return the documents to write or delete. The state counts them as written.

        The subject of the input must be in memory. ``record`` becomes part of the documents' origin.
        """
        origin = DocumentOrigin(record, get_subject(item))
        if isinstance(item, BoundAttempt):
            return self._apply_bind(item, now, origin)
        if isinstance(item, PodObserved):
            return self._apply_pod(item, now, origin)
        if isinstance(item, RefusedAgain):
            return self._apply_refusal(item, now, origin)
        if isinstance(item, WorkloadObserved | SchedulerObserved):
            return self._apply_observed(item, origin)
        return self._apply_node(item, origin)

    def _apply_bind(self, item: BoundAttempt, now: datetime, origin: DocumentOrigin) -> list[Document]:
        key = to_pod_key(item.cluster, item.pod)
        facts = self._pods[key].facts
        is_new = facts.add(to_bind_fact(item))
        is_new |= facts.describe(item.pod.uid, item.description)
        return self._derive(key, now, origin, is_new=is_new)

    def _apply_pod(self, event: PodObserved, now: datetime, origin: DocumentOrigin) -> list[Document]:
        key, digest = to_pod_key(event.cluster, event.pod), digest_of(event)
        is_change = self._pods[key].recent.add(ObservationDigest(event.observed_at, event.id, digest))
        documents = [make_observation_document(event, digest, origin)] if is_change else []
        return [*documents, *self._derive(key, now, origin, is_new=self._pods[key].learn(event))]

    def _apply_refusal(self, item: RefusedAgain, now: datetime, origin: DocumentOrigin) -> list[Document]:
        key, forecast = to_pod_key(item.cluster, item.pod), item.forecast
        if forecast is None or not self._add_forecast(key, forecast):
            return self._derive(key, now, origin, is_new=False)
        json = encode_source(build_forecast_document(forecast))
        document = Document(OBSERVATIONS.name(forecast.given_at), forecast.id, json, None, origin)
        return [document, *self._derive(key, now, origin, is_new=True)]

    def _add_forecast(self, key: PodKey, forecast: StartForecast) -> bool:
        """Add the forecast to the facts about the pod; True if it is news after the one before it."""
        facts = self._pods[key].facts
        # One that is read again comes after itself, and after later ones.
        earlier = [other for other in facts.list_forecasts(forecast.pod.uid) if other.given_at <= forecast.given_at]
        if earlier and not forecast.differs_from(earlier[-1]):
            return False
        facts.add_forecast(forecast)
        return True

    def _apply_observed(self, event: WorkloadObserved | SchedulerObserved, origin: DocumentOrigin) -> list[Document]:
        key, digest = to_observed_key(event), digest_of(event)
        self._observed.move_to_end(key)
        is_change = self._observed[key].add(ObservationDigest(event.observed_at, event.id, digest))
        return [make_observation_document(event, digest, origin)] if is_change else []

    def _apply_node(self, event: NodeRegistered | NodeObserved | NodeChecked, origin: DocumentOrigin) -> list[Document]:
        key, digest = NodeKey(event.cluster, event.node), digest_of(event)
        node = self._nodes[key]
        recent = node.recent.setdefault(_stream(event), RecentObservations())
        if not recent.add(ObservationDigest(event.observed_at, event.id, digest)):
            return []
        if isinstance(event, NodeRegistered) and node.register(event):
            # Other totals may overcommit devices although no placement has changed.
            self.holdings.note_node_change(key, event.observed_at)
        return [make_observation_document(event, digest, origin)]

    def _derive(self, key: PodKey, now: datetime, origin: DocumentOrigin, *, is_new: bool) -> list[Document]:
        """Derive the documents to change; ``is_new``: the input added facts about the pod."""
        pod = self._pods[key]
        # Kept by their latest input: `trim` drops from the front.
        self._pods.move_to_end(key)
        # The first input of a loaded pod compares the documents even if it adds nothing: an earlier run may have been
        # killed before it wrote all of them.
        if pod.is_written and not is_new:
            return []
        pod.is_written = True
        placements = pod.facts.derive_placements()
        self.holdings.put(key, derive_holdings(placements))
        self.waits.measure(pod, (derived.placement for derived in placements), now)
        return list(self._list_changes(pod, placements, now, origin))

    def _list_changes(
        self, pod: PodState, placements: Sequence[DerivedPlacement], now: datetime, origin: DocumentOrigin
    ) -> Iterator[Document]:
        """List the placements that the index does not have yet, or not as they are now, and then those to delete.

        The order matters when the process is killed in between: a fact that leaves one document must be in another
        before. So new documents come first, then changed ones, and deletions last.
        """
        wanted = {
            DocumentKey(OCCUPANCY.name(derived.placement.started_at), derived.placement.id): derived
            for derived in placements
        }
        # False sorts before True: documents that are not written yet come first.
        for key in sorted(wanted, key=pod.written.__contains__):
            derived = wanted[key]
            json = encode_source(build_placement_document(derived.placement, occupancy_queries.to_facts_field(derived)))
            written, digest = pod.written.get(key), digest_content(orjson.loads(json))
            if written is None or written.digest != digest:
                version = self._take_version(now, written.version if written else 0)
                pod.written[key] = WrittenDocument(version, digest)
                yield Document(*key, json, version, origin)
        # A placement that turned out to have begun on another day is in the index of that day now.
        for key in [key for key in pod.written if key not in wanted]:
            version = self._take_version(now, pod.written.pop(key).version)
            yield Document(*key, b"", version, origin, is_deletion=True)

    def _take_version(self, now: datetime, before: int) -> int:
        """Take a version greater than any the document ever had; by the clock, since a deleted one is unknown here."""
        self._version = max(self._version + 1, before + 1, count_microseconds(now))
        return self._version

    def forget(self, subjects: Iterable[Subject]) -> None:
        """Drop pods that another process has written about, to load them again."""
        for subject in subjects:
            if isinstance(subject, PodKey):
                # Nodes have no versioned documents, so they can't be in conflict.
                self._pods.pop(subject, None)

    def trim(self) -> None:
        """Drop the pods without an input for longest. What they hold remains in ``holdings``."""
        while len(self._pods) > self._max_pods:
            self._pods.popitem(last=False)
        while len(self._observed) > MAX_OBSERVED:
            self._observed.popitem(last=False)

    def take_forecast_turn(self, refusal: RefusedAgain, now: datetime) -> bool:
        """Tell whether a forecast is to be made for the pod, and note that it is tried. The pod must be in memory."""
        pod = self._pods[to_pod_key(refusal.cluster, refusal.pod)]
        if not pod.is_forecast_due(refusal, now):
            return False
        pod.forecast_tried_at = now
        return True

    def list_nodes_to_load(self) -> list[NodeKey]:
        """List the nodes that ``find_overcommitments`` needs and that are not in memory."""
        return [node for node in self.holdings.list_nodes_to_check() if self.is_missing(node)]

    def find_overcommitments(self, until: datetime) -> list[FindingReported]:
        """Find overcommitted devices whose holders or totals changed. All inputs before ``until`` were applied."""
        findings: list[FindingReported] = []
        for device, holdings in self.holdings.take_changed(until):
            totals = list_totals(self._nodes[device.node].registrations, device.uuid)
            findings += find_overcommitments(device.uuid, holdings, totals, until)
        self.holdings.forget_ended(until)
        return findings


def _stream(event: Observed) -> tuple[str, str]:
    return find_observation_kind(event), getattr(event, "scheduler", "")
