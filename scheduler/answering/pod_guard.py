"""Guard of pods: calls about a pod that must wait or be refused, and the claims that end when they fail.

The scheduler decides about a pod once at a time, and not while a bind of it may still take place. It believes
kube-scheduler only as far as the cluster agrees: a body that contradicts the cluster changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.request.pod_request import list_requests
from engine.fit.judge.reservation import release
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import UNMARKED
from scheduler.cluster.claims import Claims, Mark, to_mark
from scheduler.cluster.cluster_api import ClusterApi, Object, get_annotation, get_bound_node, get_version
from schemas.events import PodRef


class PodGuard:
    """The pods that are being written to. Compares calls with the cluster and the reservations."""

    def __init__(self, columns: ClusterColumns, api: ClusterApi, claims: Claims) -> None:
        self._columns, self._api, self._claims = columns, api, claims
        self._busy: dict[str, str] = {}

    def find_problem(self, uid: str) -> str:
        """Find why nothing can be done about the pod now; kube-scheduler tries again later. Empty if it can."""
        if self._claims.is_writing(uid):
            return "an earlier decision about this pod is still being written into it"
        return self._busy.get(uid) or self._api.find_problem()

    @contextmanager
    def occupied(self, uid: str, reason: str) -> Iterator[None]:
        """Refuse other calls about the pod meanwhile, with the reason."""
        self._busy[uid] = reason
        try:
            yield
        finally:
            del self._busy[uid]

    async def find_contradiction(self, pod: Object) -> str:
        """Find why a decision about this pod must not be made, by the cluster's own object; empty if it may.

        After it nothing that was begun earlier can bind the pod.
        """
        version = get_version(pod)
        if self._api.get_pod_seen(*version.key) is None and self._asks(pod):
            # kube-scheduler's watch may be ahead of ours.
            try:
                await self._api.get_pod(*version.key)
            except KubeApiError as error:
                return str(error)
            # Another call may have begun meanwhile.
            if find_problem := self.find_problem(version.uid):
                return find_problem
        cached_pod = self._api.get_pod_seen(*version.key)
        if text := self._explain_difference(pod, cached_pod):
            return text
        if cached_pod is not None and get_annotation(cached_pod, BIND_PHASE) is not None:
            return await self._exclude_earlier_bind(cached_pod)
        return ""

    def _asks(self, pod: Object) -> bool:
        return any(request.asks for request in list_requests(pod, self._columns.vendors))

    def _explain_difference(self, pod: Object, cached_pod: Object | None) -> str:
        version = get_version(pod)
        use = self._columns.get_pod_use(version.uid)
        if use and (use.namespace, use.name) != version.key:
            return f"pod {version.key.name} has the UID of another pod"
        if cached_pod is None:
            return str(build_missing_error("pod", version.key.name)) if self._asks(pod) else ""
        if get_version(cached_pod).uid != version.uid:
            return f"pod {version.key.name} has another UID in the cluster: {get_version(cached_pod).uid}"
        if node := get_bound_node(cached_pod):
            return f'pod {version.key.name} is already assigned to node "{node}"'
        vendors = self._columns.vendors
        if list_requests(pod, vendors) != list_requests(cached_pod, vendors):
            return f"pod {version.key.name} asks for other devices in the cluster than in this call"
        return ""

    async def _exclude_earlier_bind(self, cached_pod: Object) -> str:
        """Make a binding of the marked pod that may still be on its way a conflict.

        Before that its devices must not be given to others: it may be another leader's, or one whose answer was lost.
        """
        version = get_version(cached_pod)
        with self.occupied(version.uid, "whether an earlier bind of this pod took place is being looked up"):
            try:
                await self._api.patch_pod(version, UNMARKED)
            except KubeApiError as error:
                return f"whether an earlier bind of this pod took place is not known yet: {error}"
        return self.find_problem(version.uid)

    def explain_refusal(self, request: BindRequest) -> str:
        """Explain why the pod must not be bound to the node, by the reservations; empty if it may."""
        cached_pod = self._api.get_pod_seen(request.namespace, request.name)
        use = self._columns.get_pod_use(request.uid)
        if (
            cached_pod is None
            or get_bound_node(cached_pod)
            or get_annotation(cached_pod, ASSIGNED_NODE) is None
            or not self._asks(cached_pod)
        ):
            return ""
        # A later filter call has found no node, or another one: the pod's annotations reserve nothing any more.
        if use is None or use.node != request.node:
            return f"pod {request.name} holds no devices on node {request.node} any more"
        if cause := self._columns.get_withheld_cause(request.node):
            return f"node {request.node} is left to another scheduler: {cause}"
        return ""

    def release_claim(self, pod: PodRef, *marks: Mark) -> None:
        """Release what the pod holds, whatever the annotations of an earlier decision still name, unless it is
        bound."""
        cached_pod = self._api.get_pod_seen(pod.namespace, pod.name)
        self._claims.release_claim(pod.uid, *marks, *([to_mark(cached_pod)] if cached_pod else []))
        release(self._columns, pod.uid)
        # Its containers may use the devices that its annotations name.
        if (
            cached_pod is not None
            and get_bound_node(cached_pod)
            and get_version(cached_pod).uid == pod.uid
            and self._claims.accept(cached_pod)
        ):
            self._columns.apply_pod(cached_pod)
