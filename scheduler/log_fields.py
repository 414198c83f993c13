"""Fields of log lines and spans about one attempt, for the service, binds and their recovery."""

from engine.fit.events.attempt import AttemptRef
from runtime.telemetry.logs import identify_subject


def to_log_fields(attempt: AttemptRef) -> dict[str, str]:
    """Return the fields of ``attempt`` for ``extra=`` of a log call."""
    return identify_subject(
        attempt=attempt.id, pod=attempt.pod, cluster=attempt.identity.cluster, trace=attempt.trace.id
    )
