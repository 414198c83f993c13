"""KAI's pod groups: why their pods wait, from the conditions that they have for each node pool. Pure.

Only reasons that name a pod are told: what is wrong with a whole group KAI writes into its pods' own conditions too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ingest.kube.failure_messages import GRAMMAR
from ingest.kube.objects import entries, moment, text
from ingest.kube.scheduling_events import Happening
from schemas.events import PodRef

SCHEDULER: Final = "kai-scheduler"
_UNSCHEDULABLE: Final = "UnschedulableOnNodePool"
_FOR_POD: Final = re.compile(GRAMMAR["kai"]["for_pod"], re.DOTALL)


def refusals(group: Mapping[str, Any]) -> Iterator[Happening]:
    """What the group's conditions say about pods that fit nowhere; the pods' uids are not said."""
    for condition in entries(group, "status", "schedulingConditions"):
        since = moment(text(condition, "lastTransitionTime"))
        if since and text(condition, "type") == _UNSCHEDULABLE and text(condition, "status") == "True":
            for reason in entries(condition, "reasons"):
                if found := _FOR_POD.fullmatch(text(reason, "message").strip()):
                    namespace, _, name = found["pod"].partition("/")
                    pod = PodRef(namespace=namespace, name=name)
                    yield Happening("refused", since, SCHEDULER, pod, found["why"], reason=text(reason, "reason"))


def is_group(found: Mapping[str, Any]) -> bool:
    return bool(text(found, "metadata", "namespace") and text(found, "metadata", "name"))
