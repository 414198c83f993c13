"""The attempt of a path, for callers who may read its pod."""

from fastapi import Request

from api.attempt_lookup import AttemptLookup, StoredAttempt
from api.authority.access import access_of
from api.authority.rights import get_pod, list_pods
from api.handlers.not_found import no_attempt
from api.http.cluster import Cluster


async def readable_attempt(
    attempts: AttemptLookup, request: Request, cluster: Cluster, attempt_id: str
) -> StoredAttempt:
    """Raises ``NotFoundError``, and ``ForbiddenError`` with the same words for an attempt that there is or is not."""
    access = access_of(request)
    attempt = await attempts.by_id(cluster.name, attempt_id)
    pod = attempt.summary().pod if attempt else None
    # That an id is unknown is for those alone who may read every attempt.
    if not await access.allows(cluster, get_pod(pod.namespace, pod.name) if pod and pod.namespace else list_pods()):
        raise access.forbidden(f"read attempt {attempt_id}")
    if attempt is None:
        raise no_attempt(cluster.name, attempt_id)
    return attempt
