"""The short texts of the answers. The numbers and ids behind them are in the structured content."""

from typing import Final

from assistant.answers import Json, items, sentences
from terminal.screen import counted
from terminal.words import status_word
from views.amounts import gpu_hours, number
from views.constraints import exclusion_sentence

_WHO: Final = {"you": "the pod's owner", "administrator": "an administrator", "wait": "waiting"}


def diagnosis(found: Json) -> str:
    obstacle = found["obstacle"]
    if not obstacle:
        return str(found["sentence"]["en"])
    who = " or ".join(_WHO[each] for each in obstacle["who_acts"])
    others = items(each["sentence"]["en"] for each in found["other_obstacles"])
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
    changes = items(_change(each) for each in found["items"])
    return sentences(head, changes or "No single change is known that would let one in.", _not_known(found))


def _waiting(pods: int) -> str:
    return f"{counted(pods, 'pod')} {'waits' if pods == 1 else 'wait'}"


def _change(change: Json) -> str:
    return f"{change['sentence']['en']} By {_WHO[change['who_acts']]}."


def _not_known(found: Json) -> str:
    unknown = items(each["en"] for each in found["not_known"])
    return f"Not known:\n{unknown}" if unknown else ""


def pending(found: Json) -> str:
    rows = (
        f"{counted(each['pods'], 'pod')} of {counted(each['workloads'], 'workload')} "
        f"since {each['first_judged_at']}, {gpu_hours(each['gpu_hours'])} GPU-hours: "
        + (each["obstacle"]["sentence"]["en"] if each["obstacle"] else "not known")
        for each in found["items"]
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
    reasons = (f"{each['code']}: {counted(each['attempts'], 'attempt')}. {each['remedy']}" for each in found["reasons"])
    causes = (
        f"{each['cause'] or 'not known'}: {counted(each['pods'], 'pod')}, {gpu_hours(each['gpu_hours'])} GPU-hours"
        for each in found["waiting"]["causes"]
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
    changes = (f", from {each['before']:.1f} to {each['after']:.1f} at {each['at']}" for each in series["changes"][-3:])
    return f"{series['key']}: {series['total']}, before {'not known' if before is None else before}{''.join(changes)}"


def node(found: Json) -> str:
    rows = (
        f"{each['uuid']} {each['model']}: memory {_of(each, 'memory', 'mib')} MiB, "
        f"cores {_of(each, 'cores', 'percent')} %, {counted(each['slots_held'], 'slot')} taken, "
        f"held by {_holders(each) or 'no pod'}" + _unusable(each)
        for each in found["devices"]
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
    names = (
        f"{each['namespace']}/{each['name']}" if each["name"] else "another namespace" for each in device["held_by"]
    )
    return ", ".join(dict.fromkeys(names))


def attempts(found: Json) -> str:
    rows = (
        f"{each['started_at']} {each['namespace']}/{each['name']}: {status_word(each['status'])}"
        + (f" on {each['chosen']}" if each["chosen"] else "")
        + f". {each['summary']}"
        for each in found["items"]
    )
    return sentences(f"{counted(found['total'], 'attempt')}.", items(rows, found["total"]))
