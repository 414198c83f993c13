"""Our schedulers among the pods of a cluster, and the nodes that each leaves out of its decisions.

Ours looks only at nodes with the labels of its flag, and leaves nodes to another scheduler where pods of that one hold
devices (docs/decisions/0053); HAMi's does not look. So a simulation has to know whose decision it answers: that of the
scheduler whose name the pod carries.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from engine.fit.devices.pod_usage import has_ended
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_COMMAND: Final = ["scheduler", "serve"]
_NAME: Final = "--name", "SCHEDULERLOG_SCHEDULER_NAME"
_SHARES: Final = "--share-nodes-with", "SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH"
_SELECTOR: Final = "--node-label-selector", "SCHEDULERLOG_SCHEDULER_NODE_LABEL_SELECTOR"
_DEFAULT_NAME: Final = "hami-scheduler"
_EQUALITY: Final = re.compile(r"\s*([\w./-]+)\s*(!=|==?)\s*([\w.-]*)\s*")


class OwnScheduler(NamedTuple):
    """Scheduler of ours that runs as a pod."""

    shares_with: frozenset[str]
    """Schedulers whose pods keep no node from it, itself among them."""
    selector: str
    """Labels of the nodes that it looks at; empty for all nodes."""

    def rejects(self, node: Mapping[str, Any]) -> bool:
        """Tell whether the node certainly lacks the labels; of a selector with sets of values nothing is certain."""
        labels = get_object(node, "metadata", "labels")
        forms = [_EQUALITY.fullmatch(part) for part in self.selector.split(",") if part.strip()]
        return all(forms) and any((labels.get(form[1]) == form[3]) == (form[2] == "!=") for form in forms if form)


def list_own_schedulers(pods: Iterable[Mapping[str, Any]]) -> dict[str, OwnScheduler]:
    """List our schedulers that run as pods, by name.

    A setting that a ConfigMap has is not read: then the scheduler counts with its default.
    """
    schedulers: dict[str, OwnScheduler] = {}
    for pod in pods:
        if has_ended(pod):
            continue
        for container in iterate_objects(pod, "spec", "containers"):
            words = [str(word) for field in ("command", "args") for word in container.get(field) or ()]
            if _COMMAND in (words[start : start + 2] for start in range(len(words))):
                name = _read_setting(container, words, *_NAME) or _DEFAULT_NAME
                shares = _read_setting(container, words, *_SHARES).split(",")
                names = frozenset((name, *filter(None, map(str.strip, shares))))
                schedulers[name] = OwnScheduler(names, _read_setting(container, words, *_SELECTOR))
    return schedulers


def _read_setting(container: Mapping[str, Any], words: list[str], flag: str, variable: str) -> str:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, is_joined, value = word.partition("=")
        if option == flag:
            return value if is_joined else following
    variables = {get_text(entry, "name"): get_text(entry, "value") for entry in iterate_objects(container, "env")}
    return variables.get(variable, "")
