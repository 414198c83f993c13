"""Shapes in which tools and people hand over a log: each writes its lines as one of them does."""

import csv
import io
import json
from collections.abc import Callable, Sequence

STAMP = "2026-11-21T03:06:23.217054123Z"
NANOSECONDS = "1795230383217054123"
POD, CONTAINER = "hami-scheduler-7d9f8c6b5d-abcde", "vgpu-scheduler-extender"


def _prefix_each(prefix: str) -> Callable[[Sequence[str]], str]:
    return lambda lines: "".join(f"{prefix}{line}\n" for line in lines)


def _write_json_lines(make: Callable[[str], object]) -> Callable[[Sequence[str]], str]:
    return lambda lines: "".join(json.dumps(make(line)) + "\n" for line in lines)


def _write_table(lines: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([STAMP, line] for line in lines)
    return text.getvalue()


def _write_streams(lines: Sequence[str]) -> str:
    """Write the answer of Loki's API, which has the newest line first."""
    values = [[NANOSECONDS, line] for line in reversed(lines)]
    result = [{"stream": {"pod": POD}, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}})


SHAPES: dict[str, Callable[[Sequence[str]], str]] = {
    "plain": _prefix_each(""),
    "CRLF": lambda lines: "\r\n".join(lines),
    "kubectl --prefix": _prefix_each(f"[pod/{POD}/{CONTAINER}] "),
    "kubectl --timestamps": _prefix_each(f"{STAMP} "),
    "kubectl --prefix --timestamps": _prefix_each(f"[pod/{POD}/{CONTAINER}] {STAMP} "),
    "CRI": _prefix_each(f"{STAMP} stderr F "),
    "CRI behind --prefix": _prefix_each(f"[pod/{POD}/{CONTAINER}] {STAMP} stderr F "),
    "Docker": _write_json_lines(lambda line: {"log": f"{line}\n", "stream": "stderr", "time": STAMP}),
    "stern": _prefix_each(f"{POD} {CONTAINER} "),
    "stern with colours": _prefix_each(f"\x1b[36m{POD}\x1b[0m \x1b[33m{CONTAINER}\x1b[0m "),
    "stern -o json": _write_json_lines(lambda line: {"message": line, "namespace": "kube-system", "podName": POD}),
    "stern -t": _prefix_each(f"{POD} {CONTAINER} {STAMP} "),
    "k9s": _prefix_each(f"{CONTAINER} {STAMP} "),
    "docker compose": _prefix_each("hami-1  | "),
    "journalctl": _prefix_each("Nov 21 03:06:23 node-1 hami[4711]: "),
    "logcli": _prefix_each(f'{STAMP} {{app="hami", container="{CONTAINER}"}} '),
    "logcli --output=jsonl": _write_json_lines(lambda line: {"labels": {"pod": POD}, "line": line, "timestamp": STAMP}),
    "Loki's API": _write_streams,
    "Grafana, one array": lambda lines: json.dumps([{"line": line, "timestamp": NANOSECONDS} for line in lines]),
    "Grafana, array over lines": lambda lines: json.dumps([{"line": line, "date": STAMP} for line in lines], indent=2),
    "Grafana, table": _write_table,
    "Logstash": _write_json_lines(
        lambda line: {"@timestamp": STAMP, "@version": "1", "message": line, "kubernetes": {"pod": {"name": POD}}}
    ),
    "Kibana": _write_json_lines(lambda line: {"_source": {"@timestamp": STAMP, "message": line}}),
    "Fluent Bit": _write_json_lines(lambda line: {"log": line, "kubernetes": {"pod_name": POD}}),
    "Fluent Bit with Docker's keys": _write_json_lines(lambda line: {"log": line, "stream": "stderr", "time": STAMP}),
    "Fluent Bit, CRI not parsed": _write_json_lines(lambda line: {"date": 1.5, "log": f"{STAMP} stderr F {line}"}),
    "logfmt": lambda lines: "".join(f"ts={STAMP} msg={json.dumps(line)} stream=stderr\n" for line in lines),
    "quoted mail": _prefix_each("> "),
    "quoted twice": _prefix_each(">> > "),
    "indented": _prefix_each("    "),
    "indented by a tab": _prefix_each("\t"),
    "list of Markdown": _prefix_each("- "),
    "code of Markdown": lambda lines: "".join(f"- `{line}`\n" for line in lines),
    "numbered": lambda lines: "".join(f"{number:>4}  {line}\n" for number, line in enumerate(lines, 1)),
    "grep -n of several files": _prefix_each("logs/hami.log:17:"),
    "JSON in JSON": _write_json_lines(lambda line: {"message": json.dumps({"msg": line})}),
}
