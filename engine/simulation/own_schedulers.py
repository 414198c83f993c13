"""Our schedulers among the pods of a cluster, and the nodes that each leaves out of its decisions.

Ours looks only at nodes with the labels of its flag, and leaves nodes to another scheduler where pods of that one hold
devices (docs/decisions/0053); HAMi's does not look. So a simulation has to know whose decision it answers: that of the
scheduler whose name the pod carries.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.fit.devices.pod_usage import has_ended
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_COMMAND: Final = ["scheduler", "serve"]
_NAME: Final = "--name", "SCHEDULERLOG_SCHEDULER_NAME"
_SHARES: Final = "--share-nodes-with", "SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH"
SELECTOR: Final = "--node-label-selector", "SCHEDULERLOG_SCHEDULER_NODE_LABEL_SELECTOR"
"""Flag and variable of the labels of the nodes that a scheduler looks at."""
_MAP_NAME: Final = "configMapRef", "name"
_MAP_KEY: Final = "valueFrom", "configMapKeyRef"
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


def list_own_schedulers(
    pods: Iterable[Mapping[str, Any]], config_maps: Iterable[Mapping[str, Any]] = ()
) -> dict[str, OwnScheduler]:
    """List our schedulers that run as pods, by name. A setting of a ConfigMap that was not read has its default."""
    data = group_settings(config_maps)
    schedulers: dict[str, OwnScheduler] = {}
    for namespace, container in _list_containers(pods):
        settings = data.get(namespace, {})
        name = read_setting(container, _NAME, settings) or _DEFAULT_NAME
        shares = read_setting(container, _SHARES, settings).split(",")
        names = frozenset((name, *filter(None, map(str.strip, shares))))
        schedulers[name] = OwnScheduler(names, read_setting(container, SELECTOR, settings))
    return schedulers


def list_setting_maps(pods: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """List the ConfigMaps from which our schedulers take settings, by namespace and name."""
    references = (
        (namespace, get_text(source, *path))
        for namespace, container in _list_containers(pods)
        for field, path in (("envFrom", _MAP_NAME), ("env", (*_MAP_KEY, "name")))
        for source in iterate_objects(container, field)
    )
    return list(dict.fromkeys((namespace, name) for namespace, name in references if name))


def _list_containers(pods: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the containers of our schedulers, each with its namespace."""
    for pod in pods:
        if has_ended(pod):
            continue
        for container in iterate_objects(pod, "spec", "containers"):
            words = _list_words(container)
            if _COMMAND in (words[start : start + 2] for start in range(len(words))):
                yield get_text(pod, "metadata", "namespace"), container


def group_settings(config_maps: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Group the data of ConfigMaps by namespace and name."""
    data: dict[str, dict[str, Mapping[str, Any]]] = {}
    for item in config_maps:
        namespace, name = get_text(item, "metadata", "namespace"), get_text(item, "metadata", "name")
        data.setdefault(namespace, {})[name] = get_object(item, "data")
    return data


def read_setting(
    container: Mapping[str, Any], names: tuple[str, str], config_maps: Mapping[str, Mapping[str, Any]]
) -> str:
    """Read a setting of a container: its flag, otherwise its variable; empty where it has neither.

    names: flag and variable. config_maps: data of the ConfigMaps of its namespace, by name. A variable of the container
    comes before those of a whole ConfigMap, and a later one before an earlier one:
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables
    """
    flag, variable = names
    if (value := _find_option(_list_words(container), flag)) is not None:
        return value
    variables: dict[str, Any] = {}
    for source in iterate_objects(container, "envFrom"):
        data, prefix = config_maps.get(get_text(source, *_MAP_NAME), {}), get_text(source, "prefix")
        variables |= {f"{prefix}{key}": text for key, text in data.items()}
    for entry in iterate_objects(container, "env"):
        key = get_object(entry, *_MAP_KEY)
        text = get_text(config_maps, get_text(key, "name"), get_text(key, "key")) if key else get_text(entry, "value")
        variables[get_text(entry, "name")] = text
    return get_text(variables, variable)


def _list_words(container: Mapping[str, Any]) -> list[str]:
    return [str(word) for field in ("command", "args") for word in container.get(field) or ()]


def _find_option(words: Sequence[str], flag: str) -> str | None:
    """Find the value of a flag among the words of a command; None where they do not have it."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, is_joined, value = word.partition("=")
        if option == flag:
            return value if is_joined else following
    return None
