"""Our schedulers among the pods of a cluster, and the nodes that each leaves out of its decisions.

Ours looks only at nodes with the labels of its flag, and leaves nodes to another scheduler where pods of that one hold
devices (docs/decisions/0053); HAMi's does not look. So a simulation has to know whose decision it answers: that of the
scheduler whose name the pod carries.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.fit.devices.pod_usage import has_ended
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_COMMAND: Final = ["scheduler", "serve"]
_NAME: Final = "--name", "SCHEDULERLOG_SCHEDULER_NAME"
_SHARES: Final = "--share-nodes-with", "SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH"
SELECTOR: Final = "--node-label-selector", "SCHEDULERLOG_SCHEDULER_NODE_LABEL_SELECTOR"
"""Flag and variable of the labels of the nodes that a scheduler looks at."""
_DEFAULT_NAME: Final = "hami-scheduler"
EQUALITY: Final = re.compile(r"\s*([\w./-]+)\s*(!=|==?)\s*([\w.-]*)\s*")
"""Part of a selector that names one value: label, operator and value."""


class OwnScheduler(NamedTuple):
    """Scheduler of ours that runs as a pod."""

    shares_with: frozenset[str]
    """Schedulers whose pods keep no node from it, itself among them."""
    selector: str
    """Labels of the nodes that it looks at; empty for all nodes."""

    def rejects(self, node: Mapping[str, Any]) -> bool:
        """Tell whether the node certainly lacks the labels; of a selector with sets of values nothing is certain."""
        labels = get_object(node, "metadata", "labels")
        forms = [EQUALITY.fullmatch(part) for part in self.selector.split(",") if part.strip()]
        return all(forms) and not all(is_met(form, labels) for form in forms if form)


def is_met(equality: re.Match[str], labels: Mapping[str, Any]) -> bool:
    """Tell whether the labels meet a part of a selector, which `EQUALITY` matched."""
    return (labels.get(equality[1]) == equality[3]) == (equality[2] != "!=")


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
                schedulers[name] = OwnScheduler(names, _read_setting(container, words, *SELECTOR))
    return schedulers


def find_option(words: Sequence[str], flag: str) -> str | None:
    """Find the value of a flag among the words of a command; None where they do not have it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, is_joined, value = word.partition("=")
        if option == flag:
            return value if is_joined else following
    return None


def _read_setting(container: Mapping[str, Any], words: Sequence[str], flag: str, variable: str) -> str:
    if (value := find_option(words, flag)) is not None:
        return value
    variables = {get_text(entry, "name"): get_text(entry, "value") for entry in iterate_objects(container, "env")}
    return variables.get(variable, "")
