"""The routes: each path with its handler, the model of its answer, its headers and its errors."""

from typing import Final

from api.handlers.admission import AdmissionHandlers
from api.handlers.alerts import AlertHandlers
from api.handlers.capacity import CapacityHandlers
from api.handlers.cluster_file import ClusterFileHandlers
from api.handlers.clusters import ClusterHandlers
from api.handlers.comparisons import ComparisonHandlers
from api.handlers.diagnosis import DiagnosisHandlers
from api.handlers.health import Alive, HealthHandlers, Readiness
from api.handlers.names import NameHandlers
from api.handlers.pending import PendingHandlers
from api.handlers.placements import PlacementHandlers
from api.handlers.plans import PlanHandlers
from api.handlers.recordings import RecordingHandlers
from api.handlers.schedulerlog import SchedulerlogHandlers
from api.handlers.simulation import SimulationHandlers
from api.handlers.suggestions import SuggestionHandlers
from api.handlers.trends import ReportHandlers, TrendHandlers
from api.handlers.waiting import WaitingHandlers
from api.handlers.workloads import WorkloadHandlers
from api.http.cluster import CLUSTER, ROOT
from api.http.operation import Operation, OperationRoute
from api.http.pagination import CONTINUE_HEADER, TOTAL_HEADER
from api.http.tables import CSV
from schemas.answers.alerts import Alerts
from schemas.answers.attempts import FullSchedulerLog, History, SchedulerLog, Search
from schemas.answers.capacity import Defragmentation, DrainPlan, Fits, Purchase
from schemas.answers.comparisons import AttemptComparison, NodeComparison, PodNodeGroups, PodScores
from schemas.answers.diagnosis import Diagnosis
from schemas.answers.nodes import Clusters, Names, Nodes, Schedulers
from schemas.answers.placements import Findings, NodeOccupancy, NodeState, PodObservations, PodPlacements
from schemas.answers.replays import Recording
from schemas.answers.reports import FailureReport
from schemas.answers.simulation import Simulation
from schemas.answers.suggestions import Suggestions, SuggestionsForMany
from schemas.answers.trends import Trends
from schemas.answers.waiting import DeviceRefusals, PendingAnswer, PodsWaiting
from schemas.answers.workloads import WorkloadDiagnosis

POD: Final = "/namespaces/{namespace}/pods/{name}"
WORKLOAD: Final = "/namespaces/{namespace}/workloads/{word}/{name}"
NODE: Final = "/nodes/{node}"

_A_POD: Final = {name: {"schema": {"type": "object"}} for name in ("application/yaml", "application/json")}
_PAGE: Final = (400, 410, 503)
"""Errors of a list with a watch: the position from which a watch continues may have been deleted."""
_PAGE_OF_ONE: Final = (400, 404, 410, 503)
"""Errors of the pages of one attempt's nodes: a token may belong to an older version of the attempt."""
_PAGED: Final = {
    "Link": {
        "description": 'rel="next": the path of the next page. Absent on the last page.',
        "schema": {"type": "string"},
    },
    CONTINUE_HEADER: {
        "description": "Token of the next page, for ?continue=. Absent on the last page.",
        "schema": {"type": "string"},
    },
}
_COUNTED: Final = _PAGED | {
    TOTAL_HEADER: {"description": "Number of items on all pages.", "schema": {"type": "integer"}}
}
_TAGGED: Final = _COUNTED | {
    "ETag": {
        "description": "Version of the answer: it changes with every attempt, and with new facts about this one.",
        "schema": {"type": "string"},
    }
}


def list_routes(
    schedulerlog: SchedulerlogHandlers,
    comparisons: ComparisonHandlers,
    diagnosis: DiagnosisHandlers,
    workloads: WorkloadHandlers,
    suggestions: SuggestionHandlers,
    admission: AdmissionHandlers,
    simulation: SimulationHandlers,
    capacity: CapacityHandlers,
    plans: PlanHandlers,
    placements: PlacementHandlers,
    pending: PendingHandlers,
    waiting: WaitingHandlers,
    trends: TrendHandlers,
    reports: ReportHandlers,
    alerts: AlertHandlers,
    names: NameHandlers,
    clusters: ClusterHandlers,
    cluster_file: ClusterFileHandlers,
    recordings: RecordingHandlers,
    health: HealthHandlers,
) -> list[OperationRoute]:
    """List every route of the API, in the order of the documentation."""
    operations_of_cluster = [
        *_list_attempt_operations(schedulerlog),
        *_list_comparison_operations(comparisons),
        Operation(POD + "/diagnosis", diagnosis.get_diagnosis, Diagnosis, "Diagnosis of a pod", {}, (400, 404, 503)),
        Operation(WORKLOAD, workloads.get_workload, WorkloadDiagnosis, "Diagnosis of a workload", {}, (400, 404, 503)),
        Operation(
            POD + "/suggestions",
            suggestions.list_suggestions,
            Suggestions,
            "Suggestions for a pod",
            {},
            (400, 404, 503),
        ),
        Operation(
            "/simulate", simulation.simulate, Simulation, "Simulation of a pod", {}, (400, 413, 503), body=_A_POD
        ),
        Operation("/capacity", capacity.count_starts, Fits, "Pods that start now", {}, (400, 413, 503), body=_A_POD),
        Operation(
            "/defragmentation", plans.plan_moves, Defragmentation, "Moves of pods", {}, (400, 413, 503), body=_A_POD
        ),
        Operation("/purchase", plans.plan_purchase, Purchase, "Nodes to add", {}, (400, 503)),
        Operation(NODE + "/drain", plans.plan_drain, DrainPlan, "Drain of a node", {}, (400, 404, 503)),
        Operation(
            "/suggestions",
            admission.list_suggestions,
            SuggestionsForMany,
            "Suggestions for all waiting pods",
            {},
            (400, 503),
        ),
        *_list_waiting_operations(pending, waiting),
        Operation("/trends", trends.list_trends, Trends, "Counts over time", {}, (400, 503), CSV),
        Operation(
            "/reports/failures", reports.report_failures, FailureReport, "Report of failures", {}, (400, 503), CSV
        ),
        Operation("/names", names.find_names, Names, "Names", {}, (400, 503)),
        Operation("/alerts", alerts.list_alerts, Alerts, "Alerts", {}, (400, 503)),
        *_list_placement_operations(placements),
        Operation("/nodes", clusters.list_nodes, Nodes, "Nodes", _COUNTED, (400, 503)),
        Operation(
            "/cluster-file",
            cluster_file.write_cluster_at,
            None,
            "A cluster as a file",
            {},
            (400, 404, 503),
            "application/yaml",
        ),
        Operation(
            "/attempts/{attempt_id}/cluster-file",
            cluster_file.write_cluster_of_attempt,
            None,
            "The cluster of an attempt as a file",
            {},
            (400, 404, 503),
            "application/yaml",
        ),
        Operation("/recording", recordings.get_recording, Recording, "A recorded range of time", {}, (400, 404, 503)),
        Operation("/schedulers", clusters.list_schedulers, Schedulers, "Schedulers", {}, (400, 503)),
    ]
    return [
        *(OperationRoute(ROOT, operation) for operation in operations_of_cluster),
        OperationRoute(ROOT, Operation("/clusters", clusters.list_clusters, Clusters, "Clusters", {}, (400, 503))),
        *(OperationRoute(CLUSTER, operation) for operation in operations_of_cluster),
        OperationRoute("", Operation("/healthz", health.get_health, Alive, "Liveness", {}, ())),
        OperationRoute("", Operation("/readyz", health.get_readiness, Readiness, "Readiness", {}, ())),
        OperationRoute("", Operation("/metrics", health.write_metrics, None, "Metrics", {}, (), "text/plain")),
    ]


def _list_attempt_operations(schedulerlog: SchedulerlogHandlers) -> list[Operation]:
    log = SchedulerLog | FullSchedulerLog
    return [
        Operation(
            POD + "/schedulerlog",
            schedulerlog.get_schedulerlog,
            log,
            "A pod's schedulerlog",
            _TAGGED,
            _PAGE_OF_ONE,
            has_watch=True,
        ),
        Operation(
            POD + "/schedulerlog/history",
            schedulerlog.list_episodes,
            History,
            "A pod's history",
            _PAGED,
            (400, 404, 503),
        ),
        Operation("/attempts/{attempt_id}", schedulerlog.get_attempt, log, "An attempt", _TAGGED, _PAGE_OF_ONE),
        Operation("/schedulerlogs", schedulerlog.search, Search, "Search attempts", _COUNTED, _PAGE, has_watch=True),
    ]


def _list_comparison_operations(comparisons: ComparisonHandlers) -> list[Operation]:
    statuses = (400, 404, 503)
    two = "Two attempts side by side"
    return [
        Operation(POD + "/scores", comparisons.list_scores, PodScores, "Scores of a pod's nodes", {}, statuses),
        Operation(POD + "/groups", comparisons.group_nodes, PodNodeGroups, "Nodes by identical refusal", {}, statuses),
        Operation(
            POD + "/comparison", comparisons.compare_nodes, NodeComparison, "Two nodes side by side", {}, statuses
        ),
        Operation(
            "/attempts/{attempt_id}/comparison", comparisons.compare_attempts, AttemptComparison, two, {}, statuses
        ),
    ]


def _list_waiting_operations(pending: PendingHandlers, waiting: WaitingHandlers) -> list[Operation]:
    return [
        Operation(
            "/pending", pending.list_pending, PendingAnswer, "Pending pods", _COUNTED, _PAGE, CSV, has_watch=True
        ),
        Operation(
            "/pods", waiting.list_pods_by_state, PodPlacements | PodsWaiting, "Pods by state", _COUNTED, (400, 503)
        ),
        Operation(
            "/refusals", waiting.list_refusals, DeviceRefusals, "Attempts that a device refused", _PAGED, (400, 503)
        ),
    ]


def _list_placement_operations(placements: PlacementHandlers) -> list[Operation]:
    on_node = NodeOccupancy | PodPlacements
    return [
        Operation("/findings", placements.list_findings, Findings, "Findings", _COUNTED, (400, 503)),
        Operation(
            POD + "/findings", placements.list_findings_of_pod, Findings, "A pod's findings", _COUNTED, (400, 404, 503)
        ),
        Operation(
            POD + "/occupancy",
            placements.list_placements_of_pod,
            PodPlacements,
            "A pod's placements",
            _COUNTED,
            (400, 404, 503),
        ),
        Operation(
            POD + "/observations",
            placements.list_observations_of_pod,
            PodObservations,
            "A pod's observations",
            _COUNTED,
            (400, 404, 503),
        ),
        Operation(NODE, placements.get_node_state, NodeState, "A node", {}, (400, 404, 503)),
        Operation(
            NODE + "/occupancy",
            placements.get_occupancy_of_node,
            on_node,
            "A node's occupancy",
            _COUNTED,
            (400, 404, 503),
        ),
    ]
