"""The attempt that a request is about, for callers who may read its pod."""

from starlette.requests import Request

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import get_access
from api.authority.rights import get_pod, list_pods
from api.handlers.not_found import attempt_of_another_pod, no_attempt, no_attempt_of_pod
from api.http.cluster import Cluster
from api.index.attempts.attempt_queries import PodName


async def readable_latest(attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName) -> StoredAttempt:
    """The pod's latest attempt. Raises ``ForbiddenError``, ``NotFoundError``."""
    await get_access(request).require(cluster, get_pod(pod.namespace, pod.name))
    latest = await attempts.latest(pod)
    if latest is None:
        raise no_attempt_of_pod(pod.namespace, pod.name)
    return latest


async def readable_of_pod(
    attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName, attempt_id: str | None
) -> StoredAttempt:
    """The named attempt of the pod; None: its latest. Raises ``ForbiddenError``, ``NotFoundError``."""
    if attempt_id is None:
        return await readable_latest(attempts, request, cluster, pod)
    await get_access(request).require(cluster, get_pod(pod.namespace, pod.name))
    return await readable_attempt_of(attempts, request, cluster, pod, attempt_id)


async def readable_attempt_of(
    attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName, attempt_id: str
) -> StoredAttempt:
    """An attempt that has to be one of the pod. Raises ``ForbiddenError``, ``NotFoundError``."""
    attempt = await readable_attempt(attempts, request, cluster, attempt_id)
    found = attempt.read_summary().pod
    if (found.namespace, found.name) != (pod.namespace, pod.name):
        raise attempt_of_another_pod(pod.namespace, pod.name, attempt_id)
    return attempt


async def readable_attempt(
    attempts: AttemptLookup, request: Request, cluster: Cluster, attempt_id: str
) -> StoredAttempt:
    """Raises ``NotFoundError``, and ``ForbiddenError`` with the same words for an attempt that there is or is not."""
    access = get_access(request)
    attempt = await attempts.by_id(cluster.name, attempt_id)
    pod = attempt.read_summary().pod if attempt else None
    # That an id is unknown is for those alone who may read every attempt.
    if not await access.allows(cluster, get_pod(pod.namespace, pod.name) if pod and pod.namespace else list_pods()):
        raise access.to_forbidden_error(f"read attempt {attempt_id}")
    if attempt is None:
        raise no_attempt(cluster.name, attempt_id)
    return attempt
