"""Single events in a text that people paste: a row of a table without its header, or only the words of one.

A row is recognised by its type and reason, whatever stands between them: kubectl has printed four tables of events, and
copies lose columns and alignment. Words without a row are found by ``stated_sentences``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from ingest.cases.autoscaler_log import parse_scaler_line
from ingest.cases.descriptions import ASSIGNED, choose_reporter, find_repeated
from ingest.cases.stated_sentences import PastedEvent, find_sentence

_AGE: Final = r"(?:\d[\w.]*|<\w+>)(?: \(x\d+ over \S+\))?"
_AGE_WITH_UNIT: Final = r"(?:\d[\w.]*[smhdy]|<\w+>)(?: \(x\d+ over \S+\))?"
_HEAD: Final = r"(?P<type>Normal|Warning)\s+(?P<reason>OutOf[a-z][\w./-]*|[A-Z][A-Za-z]+)\s+"
"""Type and reason; a kubelet writes the resource that lacks into the reason."""
_REPORTER: Final = r"(?P<reporter>(?:[a-z]|\d+[a-z])[\w.-]*(?:/[\w.-]+)?)(?:, (?P<host>[\w.-]+))?"
_COMPONENT: Final = (
    r"[a-z\d][\w-]*(?:scheduler|karpenter|autoscaler|controller)[\w-]*|kubelet|volcano|karpenter|yunikorn"
)
_EVENTS_TABLE: Final = (
    rf"^\s*(?:(?P<namespace>[a-z0-9][a-z0-9-]*)\s+)?(?P<age>{_AGE})\s+{_HEAD}(?P<kind>[a-z]\w*)(?:\.[\w.]+)?/"
    r"(?P<name>[\w.-]+)\s+(?P<note>.*)$"
)
"""`kubectl get events`: the namespace only with -A."""
_NAMED_EVENTS: Final = (
    rf"^\s*{_AGE}\s+{_AGE}\s+\d+\s+(?P<name>[a-z0-9][\w.-]*)\.[0-9a-f]{{10,}}\s+(?P<kind>[A-Z]\w+)\s+(?:spec\S+\s+)?"
    rf"{_HEAD}{_REPORTER}\s+(?P<note>.*)$"
)
"""`kubectl get events` up to 1.14, which prints the name of the event."""
_OLD_DESCRIPTION: Final = (
    rf"^\s*{_AGE}\s+(?P<age>{_AGE})\s+\d+\s+\{{?{_REPORTER}[ }}]*\s+(?:spec\S+\s+)?{_HEAD}(?P<note>.*)$"
)
"""`kubectl describe` up to 1.8."""
_DESCRIPTION: Final = rf"^\s*{_HEAD}(?P<age>{_AGE})\s+{_REPORTER}\s+(?P<note>.*)$"
_WITHOUT_AGE: Final = rf"^\s*{_HEAD}(?P<reporter>{_COMPONENT})(?:\s+(?P<note>.*))?$"
"""A row whose age was left out: only the name of a component separates the reporter from the words."""
_WITHOUT_TYPE: Final = (
    rf"^\s*(?P<reason>(?:[A-Z][a-z]+){{2,}})\s+(?P<age>{_AGE_WITH_UNIT})\s+{_REPORTER}\s+(?P<note>.*)$"
)
"""A row whose first column was left out: only an age behind a reason of two words shows that it is one.

A number without a unit is no age: words of a scheduler begin with the number of nodes.
"""
_REPORTER_LAST: Final = (
    rf"^\s*(?P<reason>(?:[A-Z][a-z]+){{2,}})\s{{2,}}(?P<note>\S.*?)\s{{2,}}(?P<reporter>{_COMPONENT})\s*$"
)
"""A row of a console that shows only these three columns."""
_ROWS: Final = tuple(
    map(
        re.compile,
        (
            _EVENTS_TABLE,
            _NAMED_EVENTS,
            _OLD_DESCRIPTION,
            _DESCRIPTION,
            _WITHOUT_AGE,
            _WITHOUT_TYPE,
            _REPORTER_LAST,
        ),
    ),
)
_NORMAL: Final = ("Scheduled", "TriggeredScaleUp", "Nominated", "Pulling", "Pulled", "Created", "Started")
"""Reasons of events that are no warnings, for rows without their type."""
_LIST_MARK: Final = re.compile(r"^\s*(?:\d{1,2}[.)]|[*+•]|-(?=\s+(?:`|\*\*|Normal\b|Warning\b)))\s+")
_LABEL: Final = re.compile(r"^\s*[*_]*\w[^:|\"]{0,40}[:：][*_]*\s+(?=(?:Normal|Warning)\s+[A-Z][A-Za-z]+\s)")
"""Words of an author in the line of a row, such as the heading of a form."""
_EMPHASIS: Final = re.compile(r"^\s*(?P<mark>\*\*|__|`)(?P<text>(?:(?!(?P=mark)).)*)(?P=mark)?\s*$")
_OBJECT_EVENT: Final = re.compile(
    r'Event\(v1\.ObjectReference\{Kind:"(?P<kind>\w+)", Namespace:"(?P<namespace>[^"]*)", Name:"(?P<name>[^"]+)"'
    r".*?\}\): type: '(?P<type>\w+)' reason: '(?P<reason>\w+)' (?P<note>.*)$"
)
"""Event as client-go writes it into the log of the component that reports it."""
_E2E_EVENT: Final = re.compile(
    r"\bevent for (?P<name>[a-z0-9][\w.-]*): \{(?P<reporter>[\w./-]+(?<!-controller)) ?(?P<host>[\w.-]*)\} "
    r"(?P<reason>[A-Z]\w+): (?P<note>.*)$"
)
"""Event of a pod as the framework of Kubernetes' end-to-end tests prints it."""
_OCCURRED: Final = re.compile(
    r'"Event occurred" object="(?:<?(?P<namespace>[^"/<>]*)>?/)?<?(?P<name>[^"/<>]+)>?".* kind="(?P<kind>\w+)".*'
    r' type="(?P<type>\w+)" reason="(?P<reason>\w+)" message="(?P<note>(?:[^"\\]|\\.)*)"'
)
"""Event in the log of a component since structured logging; people hide names between angle brackets."""
_DENIED: Final = re.compile(
    r'"Pod admission denied" .*pod="(?P<namespace>[^"/]+)/(?P<name>[^"/]+)" reason="(?P<reason>\w+)" '
    r'message="(?P<note>(?:[^"\\]|\\.)*)"'
)
"""Line of a kubelet about a pod that it does not admit."""
_GO_EVENT: Final = re.compile(
    r"&v1(?:beta1)?\.Event\{(?=.*?\b(?:Regarding|InvolvedObject):v1\.ObjectReference\{Kind:\"(?P<kind>\w+)\", "
    r"Namespace:\"(?P<namespace>[^\"]*)\", Name:\"(?P<name>[^\"]+)\")(?=.*?[ {]Reason:\"(?P<reason>\w+)\")"
    r"(?=.*?[ {](?:Note|Message):\"(?P<note>(?:[^\"\\]|\\.)+)\")(?=.*?[ {]Type:\"(?P<type>\w+)\")"
)
"""Event as Go prints it, into the log of a component whose event the API server rejects."""
_KUBELET_ERROR: Final = re.compile(
    r'\] "(?P<what>[A-Z][^"]+)" err="(?P<note>(?:[^"\\]|\\.)*)".* pod="(?P<namespace>[^"/]+)/(?P<name>[^"/]+)"'
)
_WITHOUT_HINTS: Final = re.compile(
    r"Unable to generate topology hints: requested number of devices unavailable(?: for '(?P<old>[^']+)': |\" )"
    r"(?:resource(?:Name)?=\"(?P<resource>[^\"]+)\" )?(?:pod=\"(?P<namespace>[^\"/]+)/(?P<name>[^\"/]+)\" )?"
    r"(?:containerName=\S+ )?request(?:ed)?[:=] ?(?P<asked>\d+),? available[:=] ?(?P<free>\d+)"
)
"""Line of a kubelet whose Topology Manager finds too few devices for a pod, up to 1.20 and since."""
_OPERATOR_ERROR: Final = re.compile(r"\b(?:ERROR|error)\b[^{]*(?P<fields>\{.*\})\s*$")
"""Line of an operator's log: words, and fields in JSON behind them."""
_KIND_FIELDS: Final = ("controllerKind", "reconciler kind", "kind")
"""Fields in which versions of controller-runtime name the kind of the object."""
_SCALED: Final = ("NotTriggerScaleUp", "TriggeredScaleUp", "FailedScaleUp")
_UNREAD: Final = ("kubelet", "cluster-autoscaler")
"""Reporters whose logs no reader of schedulers' logs reads."""
_DRIVER_ERROR: Final = re.compile(
    r"\] \"[^\"]*request failed\" err=\"(?P<note>error preparing devices for claim (?:[^\"\\]|\\.)*)\".*"
    r"Namespace:(?P<namespace>[^,}\s]+),.*ClaimName:(?P<claim>[^,}\s]+)"
)
"""Line of a DRA driver's kubelet plugin that could not prepare a claim."""
_GO_STATUS: Final = re.compile(r'Status:"Failure", Message:"(?P<note>(?:[^"\\]|\\.)*)"')
"""Answer of the API server that a controller prints as Go does."""
_MAKER: Final = re.compile(r"\bfor (?P<kind>[A-Z]\w+) (?P<name>[^\s,]+), err\b")
_POD_FIELD: Final = re.compile(r'\s+\{(?=")[^{}]*"[Pp]od": ?"(?P<namespace>[^"/]+)/(?P<name>[^"/]+)"[^{}]*\}\s*$')
"""Fields in JSON behind the words of a line, of which one is a pod: zap's form for consoles, as Karpenter used it."""
_JSON: Final = re.compile(r'^(?![^{]*\b(?:ERROR|error)\b)[^{]*(?P<fields>\{"\w.*\})')
"""Line in JSON, also behind the mark of a container or between quotation marks."""
_CUT_JSON: Final = re.compile(r'"(?:error|message|msg)": ?"(?P<note>(?:[^"\\]|\\.)+)(?:"|$)')
"""Words in a line of JSON whose end is missing."""
_LOGFMT: Final = re.compile(r'(?:msg|message|err|error)="(?P<note>(?:[^"\\]|\\.)+)"')
_ARGO_NODE: Final = re.compile(r"\bnamespace=(?P<namespace>\S+) .*\bnodeID=(?P<name>\S+)")
"""Node of a workflow of Argo, which has the name of its pod."""
_JENKINS: Final = re.compile(
    r"\[(?P<type>Normal|Warning)\]\[(?P<namespace>[^\s/\]]+)/(?P<name>[^\s\]]+)\]\[(?P<reason>\w+)\] (?P<note>.+)$"
)
"""Event as Jenkins writes it into the console of a build."""
_KUBELET_LINE: Final = re.compile(r"(?:^|\s)(?P<host>[a-z0-9][\w.-]*) (?:kubelet|kubenswrapper)\[\d+\]:")
"""Line of a kubelet in the journal of its node."""
_LOGGED_POD: Final = re.compile(r'\bpod="(?P<namespace>[^\s"/]+)/(?P<name>[^\s"/]+)"')
_TAGGED: Final = re.compile(r"(?:(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) )?\[(?P<type>Normal|Warning)\]\s+(?P<note>\S.*)$")
"""Events as JupyterHub and other front ends show them: with their time, and without reason and reporter."""
_GROUP_OVER: Final = (
    r"\] (?P<note>[Rr]esource in cluster is overused), "
    r"reject job <(?P<namespace>[^\s/<>]+)/(?P<name>[^\s<>]+)> to be inqueue$"
)
"""Line of Volcano's plugin overcommit, which judges groups before any node is looked at."""
_GROUP_DISCARDED: Final = r"\] Discard Job <(?P<namespace>[^\s/<>]+)/(?P<name>[^\s<>]+)> because (?P<note>.+)$"
"""Line of kube-batch on a gang."""
_GROUP_LINES: Final = tuple(map(re.compile, (_GROUP_OVER, _GROUP_DISCARDED)))
_KLOG: Final = re.compile(r"\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ \S+\]")
_NODE_CLAIM: Final = "NodeClaim"


def parse_row(line: str) -> PastedEvent | None:
    """Parse a row of a table of events; None for other lines."""
    line = _strip_markup(line)
    for pattern in _ROWS:
        if match := pattern.match(line):
            return _build_event(match.groupdict())
    return None


def parse_statement(line: str) -> PastedEvent | None:
    """Parse an event that stands in a line without its table: of a log, a message, or only its words."""
    line = _strip_markup(line)
    if (written := _JSON.search(line)) and (logged := _parse_json(written["fields"])):
        return logged
    if match := _OBJECT_EVENT.search(line):
        return _build_event(match.groupdict())
    if match := _E2E_EVENT.search(line):
        return _build_event(match.groupdict() | {"kind": "Pod"})
    if match := _OCCURRED.search(line):
        return _build_event(match.groupdict() | {"note": _unquote(match["note"])})
    if match := _DENIED.search(line):
        namespace, name = match.group("namespace", "name")
        host = kubelet["host"] if (kubelet := _KUBELET_LINE.search(line)) else ""
        denied = PastedEvent(match["reason"], _unquote(match["note"]), "kubelet", kind="Pod", name=name, host=host)
        return replace(denied, namespace=namespace)
    if match := _JENKINS.search(line):
        return _build_event(match.groupdict() | {"kind": "Pod"})
    if match := _GO_EVENT.search(line):
        return _build_event(match.groupdict() | {"note": _unquote(match["note"])})
    if match := _WITHOUT_HINTS.search(line):
        return _build_without_hints(match)
    if match := _KUBELET_ERROR.search(line):
        stated = find_sentence(f"{match['what']}: {match['note']}") or find_sentence(match["note"])
        return stated and replace(stated, kind="Pod", namespace=match["namespace"], name=match["name"])
    if (error := _OPERATOR_ERROR.search(line)) and (logged := _parse_operator_error(error["fields"])):
        return logged
    if logged := parse_log_line(line):
        return logged
    if match := _DRIVER_ERROR.search(line):
        note = f"claim {match['namespace']}/{match['claim']}: {match['note']}"
        return PastedEvent("FailedPrepareDynamicResources", note, "kubelet", namespace=match["namespace"])
    if match := _GO_STATUS.search(line):
        stated, maker = find_sentence(_unquote(match["note"])), _MAKER.search(line)
        return replace(stated, reporter=f"{maker['kind']}/{maker['name']}") if stated and maker else stated
    quotations = (*_LOGFMT.finditer(line), *_CUT_JSON.finditer(line))
    notes = (_unquote(quoted["note"]) for quoted in quotations)
    if stated := next((event for note in notes if (event := find_sentence(note))), None):
        named = _ARGO_NODE.search(line) or _LOGGED_POD.search(line)
        host = kubelet["host"] if (kubelet := _KUBELET_LINE.search(line)) else ""
        if named:
            stated = replace(stated, kind="Pod", namespace=named["namespace"], name=named["name"])
        return replace(stated, host=host)
    if _KLOG.search(line):
        return None
    if field := _POD_FIELD.search(line):
        stated = find_sentence(line[: field.start()], is_quotation=True)
        return stated and replace(stated, kind="Pod", namespace=field["namespace"], name=field["name"])
    tagged = _TAGGED.search(line)
    return _parse_tagged(tagged) if tagged else find_sentence(line)


def _parse_tagged(tagged: re.Match[str]) -> PastedEvent | None:
    """Parse an event that a front end shows: its words tell its reason."""
    note = tagged["note"]
    if ASSIGNED.match(note):
        stated: PastedEvent | None = PastedEvent("Scheduled", note)
    else:
        stated = find_sentence(note)
    return stated and replace(stated, is_warning=tagged["type"] == "Warning", time=tagged["time"] or "")


def _build_without_hints(match: re.Match[str]) -> PastedEvent:
    resource = match["old"] or match["resource"] or ""
    # The words of the event that follows where Topology Manager lets the pod pass.
    note = (
        f"Allocate failed due to requested number of devices unavailable for {resource}. Requested: {match['asked']}, "
        f"Available: {match['free']}, which is unexpected"
    )
    unnamed = PastedEvent("TopologyAffinityError", note, "kubelet")
    namespace, name = match.group("namespace", "name")
    return replace(unnamed, kind="Pod", namespace=namespace, name=name) if name else unnamed


def _unquote(text: str) -> str:
    """Return what stands between quotation marks as it was before it was quoted."""
    return text.replace('\\"', '"')


def parse_log_line(line: str) -> PastedEvent | None:
    """Parse a line that no reader of schedulers' logs reads: an autoscaler's, or Volcano's that refuses a group."""
    if match := _search_first(_GROUP_LINES, line):
        note, namespace, name = match.group("note", "namespace", "name")
        words = note[0].lower() + note[1:]
        return PastedEvent("Unschedulable", words, "volcano", kind="PodGroup", namespace=namespace, name=name)
    if (match := _OBJECT_EVENT.search(line)) and match["reason"] in _SCALED:
        return _build_event(match.groupdict())
    if (match := _OCCURRED.search(line)) and choose_reporter(match["reason"], match["note"]) in _UNREAD:
        return _build_event(match.groupdict() | {"note": _unquote(match["note"])})
    return parse_scaler_line(line)


def _search_first(patterns: Sequence[re.Pattern[str]], line: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.search(line))), None)


def _strip_markup(line: str) -> str:
    """Strip the mark of a list, and the emphasis or quotation around the line as a whole."""
    text = _LABEL.sub("", _LIST_MARK.sub("", line))
    emphasis = _EMPHASIS.match(text)
    return emphasis["text"] if emphasis else text


def _build_event(fields: dict[str, str | None]) -> PastedEvent:
    texts = {name: text or "" for name, text in fields.items()}
    note, reason = texts["note"].strip().strip("`"), texts["reason"]
    is_warning = texts["type"] == "Warning" if "type" in texts else reason not in _NORMAL
    if repeated := find_repeated(note):
        kind, name, note = repeated
        return PastedEvent(
            reason, note, choose_reporter(reason, note), is_warning, texts.get("age", ""), kind, name=name
        )
    return PastedEvent(
        reason, note, texts.get("reporter") or choose_reporter(reason, note), is_warning, texts.get("age", ""),
        texts.get("kind", ""), texts.get("namespace", ""), texts.get("name", ""), texts.get("host", ""),
    )  # fmt: skip


def _parse_json(line: str) -> PastedEvent | None:
    """Parse a line of a log in JSON, such as Karpenter's: the pod is a field next to the words."""
    try:
        logged = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    # A container's runtime writes each line of its log into this field.
    if isinstance(logged, dict) and isinstance(logged.get("log"), str) and logged["log"].startswith("{"):
        return _parse_json(logged["log"])
    texts = list(_list_texts(logged))
    if claim := _find_node_claim(logged):
        return PastedEvent("FailedLaunch", texts[0], "karpenter", kind=_NODE_CLAIM, name=claim) if texts else None
    stated = next((event for text in texts if (event := find_sentence(text))), None)
    namespace, name = _find_logged_pod(logged)
    return stated and replace(stated, kind="Pod" if name else "", namespace=namespace, name=name)


def _parse_operator_error(text: str) -> PastedEvent | None:
    """Parse the fields of an operator's error about an object, whose pods the API server refused."""
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    stated = next((event for words in _list_texts(fields) if (event := find_sentence(words))), None)
    kind = next((fields[name] for name in _KIND_FIELDS if isinstance(fields.get(name), str)), "")
    name, namespace = (fields.get(field) for field in ("name", "namespace"))
    if stated is None or not (kind and isinstance(name, str) and isinstance(namespace, str)):
        return stated
    return replace(stated, kind=kind, namespace=namespace, name=name, reporter=f"{kind.lower()}-controller")


def _find_node_claim(logged: Any) -> str:
    """Find the node that Karpenter could not make, by the line of an error about its claim; empty for other lines."""
    fields = logged if isinstance(logged, dict) and str(logged.get("level")).upper() == "ERROR" else {}
    claim = fields.get(_NODE_CLAIM)
    return str(claim.get("name", "")) if isinstance(claim, dict) and fields.get("error") else ""


def _list_texts(logged: Any) -> Iterator[str]:
    """List the texts of a logged line: Karpenter writes the cause into ``error`` or into ``message``."""
    fields = logged if isinstance(logged, dict) else {}
    for name in ("error", "message", "msg", "note"):
        if isinstance(fields.get(name), str):
            yield fields[name]


def _find_logged_pod(logged: Any) -> tuple[str, str]:
    fields = logged if isinstance(logged, dict) else {}
    pod = fields.get("Pod", fields.get("pod"))
    # What a query leaves of an event.
    if pod is None and "reason" in fields and isinstance(fields.get("name"), str):
        return str(fields.get("namespace") or ""), fields["name"]
    if isinstance(pod, dict):
        return str(pod.get("namespace", "")), str(pod.get("name", ""))
    namespace, _, name = pod.rpartition("/") if isinstance(pod, str) else ("", "", "")
    return namespace, name
