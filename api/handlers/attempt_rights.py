"""Attempts of a request, for callers who may read their pods."""

from typing import Final

from starlette.requests import Request

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import get_access
from api.authority.rights import get_pod, list_pods
from api.handlers.not_found import to_no_attempt_error, to_no_attempt_of_pod_error, to_other_pod_error
from api.http.cluster import Cluster
from api.index.attempts.attempt_queries import PodName

_NO_NAMESPACE: Final = "no-namespace"
"""Namespace in the review of an unknown attempt. Its answer counts for nothing."""


async def find_readable_latest(
    attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName
) -> StoredAttempt:
    """Find the pod's latest attempt. Raises ``ForbiddenError``, ``NotFoundError``."""
    await get_access(request).require(cluster, get_pod(pod.namespace, pod.name))
    latest = await attempts.find_latest(pod)
    if latest is None:
        raise to_no_attempt_of_pod_error(*pod)
    return latest


async def find_readable_attempt_or_latest(
    attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName, attempt_id: str | None
) -> StoredAttempt:
    """Find the named attempt of the pod; without a name, its latest. Raises ``ForbiddenError``, ``NotFoundError``."""
    if attempt_id is None:
        return await find_readable_latest(attempts, request, cluster, pod)
    await get_access(request).require(cluster, get_pod(pod.namespace, pod.name))
    return await find_readable_attempt_of_pod(attempts, request, cluster, pod, attempt_id)


async def find_readable_attempt_of_pod(
    attempts: AttemptLookup, request: Request, cluster: Cluster, pod: PodName, attempt_id: str
) -> StoredAttempt:
    """Find an attempt that must belong to the pod. Raises ``ForbiddenError``, ``NotFoundError``."""
    attempt = await find_readable_attempt(attempts, request, cluster, attempt_id)
    owner = attempt.read_summary().pod
    if (owner.namespace, owner.name) != (pod.namespace, pod.name):
        raise to_other_pod_error(pod.namespace, pod.name, attempt_id)
    return attempt


async def find_readable_attempt(
    attempts: AttemptLookup, request: Request, cluster: Cluster, attempt_id: str
) -> StoredAttempt:
    """Find an attempt. Raises ``NotFoundError``, and ``ForbiddenError`` with equal words if it exists or not."""
    access = get_access(request)
    attempt = await attempts.find_by_id(cluster.name, attempt_id)
    pod = attempt.read_summary().pod if attempt else None
    # Both rights in any case, and about an unknown attempt that of a pod which does not exist: otherwise the time of
    # the answer would show whether the attempt exists.
    has_all = await access.allows(cluster, list_pods())
    name = (pod.namespace, pod.name) if pod and pod.namespace else (_NO_NAMESPACE, attempt_id)
    has_pod = await access.allows(cluster, get_pod(*name))
    # Only callers who may read every attempt learn that an id is unknown.
    if not (has_pod if pod and pod.namespace else has_all):
        raise access.to_forbidden_error(f"read attempt {attempt_id}")
    if attempt is None:
        raise to_no_attempt_error(cluster.name, attempt_id)
    return attempt
