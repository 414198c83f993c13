"""Which calls about a pod must wait or be refused, and what is given up when they fail.

A pod is decided about once at a time, and not while a bind of it may still take place. kube-scheduler is believed only
as far as the cluster says the same: a body that contradicts it changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.request.pod_request import list_requests
from engine.fit.judge.reservation import release
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE
from runtime.kubernetes.errors import KubeApiError, missing
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import UNMARKED
from scheduler.cluster.claims import Claims, Mark, mark_of
from scheduler.cluster.cluster_api import ClusterApi, Object, annotation, bound_node, version_of
from schemas.events import PodRef


class PodGuard:
    """Knows which pods are being written to, and compares calls with the cluster and the reservations."""

    def __init__(self, columns: ClusterColumns, api: ClusterApi, claims: Claims) -> None:
        self._columns, self._api, self._claims = columns, api, claims
        self._busy: dict[str, str] = {}

    def problem(self, uid: str) -> str:
        """Why nothing can be done about the pod now; kube-scheduler tries again later. Empty if it can."""
        if self._claims.is_writing(uid):
            return "an earlier decision about this pod is still being written into it"
        return self._busy.get(uid) or self._api.problem()

    @contextmanager
    def occupied(self, uid: str, reason: str) -> Iterator[None]:
        """Refuse other calls about the pod meanwhile, with the reason."""
        self._busy[uid] = reason
        try:
            yield
        finally:
            del self._busy[uid]

    async def contradiction(self, pod: Object) -> str:
        """Why a decision about this pod must not be made, by what the cluster says about it; empty if it may.

        After it nothing that was begun earlier can bind the pod.
        """
        about = version_of(pod)
        if self._api.known_pod(*about.key) is None and self._asks(pod):
            # kube-scheduler's watch may be ahead of ours.
            try:
                await self._api.get_pod(*about.key)
            except KubeApiError as error:
                return str(error)
            # Another call may have begun meanwhile.
            if problem := self.problem(about.uid):
                return problem
        known = self._api.known_pod(*about.key)
        if text := self._difference(pod, known):
            return text
        if known is not None and annotation(known, BIND_PHASE) is not None:
            return await self._rule_out_earlier_bind(known)
        return ""

    def _asks(self, pod: Object) -> bool:
        return any(request.asks for request in list_requests(pod, self._columns.vendors))

    def _difference(self, pod: Object, known: Object | None) -> str:
        about = version_of(pod)
        use = self._columns.get_pod_use(about.uid)
        if use and (use.namespace, use.name) != about.key:
            return f"pod {about.key.name} has the UID of another pod"
        if known is None:
            return str(missing("pod", about.key.name)) if self._asks(pod) else ""
        if version_of(known).uid != about.uid:
            return f"pod {about.key.name} has another UID in the cluster: {version_of(known).uid}"
        if node := bound_node(known):
            return f'pod {about.key.name} is already assigned to node "{node}"'
        vendors = self._columns.vendors
        if list_requests(pod, vendors) != list_requests(known, vendors):
            return f"pod {about.key.name} asks for other devices in the cluster than in this call"
        return ""

    async def _rule_out_earlier_bind(self, known: Object) -> str:
        """Make a binding of the marked pod that may still be on its way a conflict.

        Before that its devices must not be given to others: it may be another leader's, or one whose answer was lost.
        """
        about = version_of(known)
        with self.occupied(about.uid, "whether an earlier bind of this pod took place is being looked up"):
            try:
                await self._api.patch_pod(about, UNMARKED)
            except KubeApiError as error:
                return f"whether an earlier bind of this pod took place is not known yet: {error}"
        return self.problem(about.uid)

    def why_not_bind(self, request: BindRequest) -> str:
        """Why the pod must not be bound to the node, by the reservations; empty if it may."""
        known = self._api.known_pod(request.namespace, request.name)
        use = self._columns.get_pod_use(request.uid)
        if known is None or bound_node(known) or annotation(known, ASSIGNED_NODE) is None or not self._asks(known):
            return ""
        # A later filter call has found no node, or another one: the pod's annotations reserve nothing any more.
        if use is None or use.node != request.node:
            return f"pod {request.name} holds no devices on node {request.node} any more"
        return ""

    def let_go(self, pod: PodRef, *marks: Mark) -> None:
        """Free what the pod holds, whatever the annotations of an earlier decision still name, unless it is bound."""
        known = self._api.known_pod(pod.namespace, pod.name)
        self._claims.let_go(pod.uid, *marks, *([mark_of(known)] if known else []))
        release(self._columns, pod.uid)
        # Its containers may use the devices that its annotations name.
        if known is not None and bound_node(known) and version_of(known).uid == pod.uid and self._claims.count(known):
            self._columns.apply_pod(known)
