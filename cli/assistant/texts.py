"""The short texts of the answers. The numbers and ids behind them are in the structured content."""

from typing import Final

from cli.assistant.answers import items, sentences
from cli.terminal.screen import counted
from cli.terminal.words import status_word
from page.views.amounts import gpu_hours, number
from page.views.constraints import exclusion_sentence
from schemas.json_types import Json

_WHO: Final = {"you": "the pod's owner", "administrator": "an administrator", "wait": "waiting"}


def diagnosis(found: Json) -> str:
    obstacle = found["obstacle"]
    if not obstacle:
        return str(found["sentence"]["en"])
    who = " or ".join(_WHO[actor] for actor in obstacle["who_acts"])
    others = items(other_obstacle["sentence"]["en"] for other_obstacle in found["other_obstacles"])
    return sentences(
        f"{found['sentence']['en']} (state: {found['state']}, reason: {obstacle['code']})",
        f"Likely cause: {obstacle['likely_cause']['en']}",
        f"Remedy, by {who}: {obstacle['remedy']['en']}",
        exclusion_sentence(found["excluded_by"], "en"),
        f"Also in the way:\n{others}" if others else "",
    )


def suggestions(found: Json) -> str:
    changes = items(map(_change, found["items"]))
    if found["state"] != "refused":
        fits = "The pod fits the cluster as it is."
        head = {"placed": "The pod has a node.", "fits": f"{fits} Its bind was stopped:" if changes else fits}
        return sentences(head[found["state"]], changes)
    return sentences(
        f"It would fit after any one of these:\n{changes}" if changes else "No change is known that would help.",
        exclusion_sentence(found["excluded_by"], "en"),
        _not_known(found),
    )


def changes_for_many(found: Json) -> str:
    head = f"{_waiting(found['waiting'])}; tried: {found['judged']}, of which {found['fit']} would fit as it is."
    changes = items(_change(item) for item in found["items"])
    return sentences(head, changes or "No single change is known that would let one in.", _not_known(found))


def _waiting(pods: int) -> str:
    return f"{counted(pods, 'pod')} {'waits' if pods == 1 else 'wait'}"


def _change(change: Json) -> str:
    return f"{change['sentence']['en']} By {_WHO[change['who_acts']]}."


def _not_known(found: Json) -> str:
    unknown = items(text["en"] for text in found["not_known"])
    return f"Not known:\n{unknown}" if unknown else ""


def pending(found: Json) -> str:
    rows = (
        f"{counted(item['pods'], 'pod')} of {counted(item['workloads'], 'workload')} "
        f"since {item['first_judged_at']}, {gpu_hours(item['gpu_hours'])} GPU-hours: "
        + (item["obstacle"]["sentence"]["en"] if item["obstacle"] else "not known")
        for item in found["items"]
    )
    head = f"{_waiting(found['pods'])}, for {counted(found['total'], 'obstacle')}."
    return sentences(head, items(rows, found["total"]))


def trends(found: Json) -> str:
    head = (
        f"{found['count']} by {found['by']} from {found['since']} to {found['until']}; levels are means of "
        f"{found['interval_seconds']} s."
    )
    return sentences(head, items(map(_series, found["items"])))


def report(found: Json) -> str:
    reasons = (
        f"{reason['code']}: {counted(reason['attempts'], 'attempt')}. {reason['remedy']}" for reason in found["reasons"]
    )
    causes = (
        f"{cause['cause'] or 'not known'}: {counted(cause['pods'], 'pod')}, {gpu_hours(cause['gpu_hours'])} GPU-hours"
        for cause in found["waiting"]["causes"]
    )
    waiting = f"{_waiting(found['waiting']['pods'])} now, {gpu_hours(found['waiting']['gpu_hours'])} GPU-hours:"
    change = found["best_change"]
    return sentences(
        f"{found['failed']} of {found['attempts']} attempts failed from {found['since']} to {found['until']}; "
        f"{found['bind_failed']} of them had a node and failed to be bound to it.",
        items(reasons),
        f"{waiting}\n{items(causes)}" if found["waiting"]["pods"] else "",
        f"The one change that helps most: {_change(change)}" if change else "",
    )


def _series(series: Json) -> str:
    before = series["total_before"]
    changes = (
        f", from {change['before']:.1f} to {change['after']:.1f} at {change['at']}" for change in series["changes"][-3:]
    )
    return f"{series['key']}: {series['total']}, before {'not known' if before is None else before}{''.join(changes)}"


def node(found: Json) -> str:
    rows = (
        f"{device['uuid']} {device['model']}: memory {_of(device, 'memory', 'mib')} MiB, "
        f"cores {_of(device, 'cores', 'percent')} %, {counted(device['slots_held'], 'slot')} taken, "
        f"held by {_holders(device) or 'no pod'}" + _unusable(device)
        for device in found["devices"]
    )
    free = f"{found['free_devices']} of {counted(len(found['devices']), 'device')} free"
    head = f"{found['node']} at {found['at']}: {'cordoned, ' if found['cordoned'] else ''}{free}."
    return sentences(head, items(rows))


def _unusable(device: Json) -> str:
    return (", unhealthy" if device["healthy"] is False else "") + (", cordoned" if device["cordoned"] else "")


def _of(device: Json, what: str, unit: str) -> str:
    held, total = device[f"{what}_held_{unit}"], device[f"{what}_total_{unit}"]
    return f"{'?' if held is None else number(held)}/{'?' if total is None else number(total)}"


def _holders(device: Json) -> str:
    names = (f"{pod['namespace']}/{pod['name']}" if pod["name"] else "another namespace" for pod in device["held_by"])
    return ", ".join(dict.fromkeys(names))


def attempts(found: Json) -> str:
    rows = (
        f"{item['started_at']} {item['namespace']}/{item['name']}: {status_word(item['status'])}"
        + (f" on {item['chosen']}" if item["chosen"] else "")
        + f". {item['summary']}"
        for item in found["items"]
    )
    return sentences(f"{counted(found['total'], 'attempt')}.", items(rows, found["total"]))
