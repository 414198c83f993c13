"""Refusals in the conditions of KAI's pod groups, which have one condition per node pool.

Only reasons that name a pod count: what concerns the whole group KAI also writes into the conditions of its pods.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ingest.readers.kube.failure_messages import GRAMMAR
from ingest.readers.kube.scheduling_events import SchedulingEvent
from runtime.kubernetes.object_fields import get_text, iterate_objects, parse_moment
from schemas.events import PodRef

SCHEDULER: Final = "kai-scheduler"
_UNSCHEDULABLE: Final = "UnschedulableOnNodePool"
_FOR_POD: Final = re.compile(GRAMMAR["kai"]["for_pod"], re.DOTALL)


def list_refusals(group: Mapping[str, Any]) -> Iterator[SchedulingEvent]:
    """List a refusal for each pod that the conditions name; they have no UIDs of pods."""
    for condition in iterate_objects(group, "status", "schedulingConditions"):
        since = parse_moment(get_text(condition, "lastTransitionTime"))
        if since and get_text(condition, "type") == _UNSCHEDULABLE and get_text(condition, "status") == "True":
            for reason in iterate_objects(condition, "reasons"):
                if match := _FOR_POD.fullmatch(get_text(reason, "message").strip()):
                    namespace, _, name = match["pod"].partition("/")
                    pod = PodRef(namespace=namespace, name=name)
                    yield SchedulingEvent(
                        "refused", since, SCHEDULER, pod, match["why"], reason=get_text(reason, "reason")
                    )


def is_group(group: Mapping[str, Any]) -> bool:
    return bool(get_text(group, "metadata", "namespace") and get_text(group, "metadata", "name"))
