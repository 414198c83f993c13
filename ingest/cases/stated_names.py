"""The pod that an author names in prose, or the only one that waits in a table, for events that name none."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ingest.cases.kubectl_tables import find_waiting_pod
from ingest.cases.pasted_objects import PROMPT

_QUOTED: Final = re.compile(
    r"\b[Pp]ods?(?:'s name)?(?: (?:is|was|of|for|named|called|by the name of))*[ :=]*(?P<mark>[`\"'*]{1,2})"
    r"(?P<name>[a-z0-9][a-z0-9.-]{1,250}[a-z0-9])(?P=mark)"
)
_BARE: Final = re.compile(
    r"(?:^|[^\w\"'./`-])(?:[Pp]ods?|[Pp]od name)(?: (?:is|was|of|for|named|called))*[ :=]+"
    r"(?P<name>[a-z](?=[a-z0-9.]*-)(?=[a-z.-]*[0-9])[a-z0-9.-]{1,250}[a-z0-9])(?![\w/=:\"]*[=/\"])"
)
"""A name without marks: only a dash and a digit tell it from a word."""
_QUALIFIED: Final = re.compile(
    r"(?:\b[Pp]ods?[ :=]+|\[PodInfo\] |\b[Cc]reated [Pp]od: \w+ )[`\"']?"
    r"(?P<namespace>(?=[0-9-]*[a-z])[a-z0-9][a-z0-9-]{0,62})/"
    r"(?P<name>[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)(?![\w/])"
)
"""A name with its namespace, as programs write it that make pods: runners of GitLab, Jenkins, Flyte."""
_LABELED: Final = re.compile(
    r"(?i:\bpod) ?的?(?:名称|名字|名)(?:为|是)?\s*[:：=]?\s*[`\"']?"
    r"(?P<name>[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)(?![\w/])"
)
"""A name behind a Chinese label, which says that it is one."""
_REPORTS: Final = re.compile(
    r"^\s*(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)+) (?:reports|says|shows|is stuck|is (?:still )?[Pp]ending|stays)\b"
)
_IN_NAMESPACE: Final = re.compile(
    r"(?<![\w./-])(?P<name>[a-z0-9][a-z0-9.-]*-[a-z0-9.-]*[a-z0-9]) pod in "
    r"(?P<namespace>[a-z0-9][a-z0-9-]{0,62}) namespace\b"
)
QUEUED: Final = re.compile(
    r"(?P<namespace>[a-z0-9][a-z0-9-]{0,62})/(?P<name>[a-z0-9][a-z0-9.-]*) is queued and waiting for allocation"
)
"""Words of YuniKorn about a pod."""
_UNREADY: Final = re.compile(
    r"(?:^|\s)(?P<name>[a-z0-9][a-z0-9.-]*[a-z0-9]): containers with (?:unready|incomplete) status: \["
)
"""A name before its conditions, as Rancher joins them."""
_WAITS: Final = re.compile(r"\b(?:[Pp]od not yet started|Created pod): (?P<name>[a-z0-9][a-z0-9.-]*[a-z0-9])$")
"""A name in the log of a task of Airflow, and in the event of the Job that made the pod."""
_DEPLOYED: Final = re.compile(
    r"(?:(?<=\s)(?P<namespace>[a-z0-9][a-z0-9-]{0,62}):)?\bpod/(?P<name>[a-z0-9][a-z0-9.-]*[a-z0-9]): "
)
"""A name before the words about it, as Skaffold reports the pods of a deployment."""
_NAMESPACE: Final = re.compile(
    r"(?:\b(?:in|of|from) (?:the )?|\()namespace[ :=]+[`\"'*]*(?P<name>[a-z0-9][a-z0-9-]{0,62})(?![\w./])|"
    r"\b(?:in|of|from) (?:the )?[`\"'*]*(?P<before>[a-z0-9][a-z0-9-]{0,62})[`\"'*]* namespace\b|"
    r"命名空间(?:为|是)?\s*[:：=]?\s*[`\"']?(?P<label>[a-z0-9][a-z0-9-]{0,62})"
)
"""A namespace that prose names, in the line that names the pod."""
_ARTICLES: Final = ("the", "this", "that", "same", "my", "our", "a", "one", "other", "another", "its", "their", "each")
_COMPONENT: Final = re.compile(
    r"(?:scheduler|autoscaler|controller|manager|operator|webhook|plugin|kubelet|extender|api|server)$|"
    r"\.(?:ya?ml|json)$"
)
"""End of a name that is a component's or a file's."""


_NAMING: Final = (_QUOTED, _BARE, _REPORTS, _LABELED, _UNREADY, _WAITS)


def list_stated_pods(lines: Iterable[str], scope: str) -> set[tuple[str, str]]:
    """List the pods, each as namespace and name, that prose and tables name; the namespace is often not stated."""
    return {named for line in lines for named in _iterate_names(line, scope)}


def _iterate_names(line: str, scope: str) -> Iterator[tuple[str, str]]:
    if waiting := find_waiting_pod(line, scope):
        yield waiting
    elif not PROMPT.match(line):
        matches = [match for pattern in _NAMING for match in pattern.finditer(line)]
        for pattern in (_QUALIFIED, _DEPLOYED, _IN_NAMESPACE, QUEUED):
            yield from ((match["namespace"] or "", match["name"]) for match in pattern.finditer(line))
        namespace = _find_namespace(line)
        yield from ((namespace, match["name"]) for match in matches if not _COMPONENT.search(match["name"]))


def _find_namespace(line: str) -> str:
    """Find the only namespace that a line of prose names; empty for none or several."""
    names = {name for match in _NAMESPACE.finditer(line) for name in match.groups() if name} - {*_ARTICLES}
    return names.pop() if len(names) == 1 else ""
