"""The short texts of the answers. The numbers and ids behind them are in the structured content."""

from typing import Final

from cli.assistant.answers import join_sentences, list_items
from cli.terminal.screen import format_count
from cli.terminal.values import to_status_word
from page.views.amounts import format_gpu_hours, format_number
from page.views.translations import write_exclusion
from schemas.json_types import Json

_MOVES: Final = {"moves": "moves", "waits": "would wait", "open": "is not known to fit", "blocked": "is not evicted"}
_WHO: Final = {"you": "the pod's owner", "administrator": "an administrator", "wait": "waiting"}


def describe_diagnosis(answer: Json) -> str:
    obstacle, background = answer["obstacle"], answer["background"]
    if not obstacle:
        return str(answer["headline"]["en"])
    who = " or ".join(_WHO[actor] for actor in obstacle["who_acts"])
    others = list_items(other_obstacle["sentence"]["en"] for other_obstacle in answer["other_obstacles"])
    return join_sentences(
        f"{answer['headline']['en']} (state: {answer['state']}, reason: {obstacle['code']})",
        background["en"] if background else "",
        f"Likely cause: {obstacle['likely_cause']['en']}",
        f"Remedy, by {who}: {obstacle['remedy']['en']}",
        write_exclusion(answer["excluded_by"], "en"),
        f"Also in the way:\n{others}" if others else "",
        answer["start"]["sentence"]["en"] if answer.get("start") else "",
    )


def describe_workload(answer: Json) -> str:
    groups = list_items(_describe_group(group) for group in answer["groups"])
    first = answer["groups"][0]["obstacle"] if answer["groups"] else None
    remedy = f"Remedy: {first['remedy']['en']}" if first else ""
    return join_sentences(str(answer["sentence"]["en"]), groups, remedy)


def _describe_group(group: Json) -> str:
    obstacle = group["obstacle"]
    why = f": {obstacle['sentence']['en']} ({obstacle['code']})" if obstacle else ""
    return f"{format_count(group['count'], 'pod')} {group['state']}{why}"


def describe_suggestions(answer: Json) -> str:
    changes = list_items(map(_describe_change, answer["items"]))
    if answer["state"] != "refused":
        fits = "The pod fits the cluster as it is."
        head = {"placed": "The pod has a node.", "fits": f"{fits} Its bind was stopped:" if changes else fits}
        return join_sentences(head[answer["state"]], changes)
    return join_sentences(
        f"It would fit after any one of these:\n{changes}" if changes else "No change is known that would help.",
        write_exclusion(answer["excluded_by"], "en"),
        _list_unknown(answer),
    )


def describe_changes_for_many(answer: Json) -> str:
    head = (
        f"{_count_waiting(answer['waiting'])}; tried: {answer['judged']}, of which {answer['fit']} would fit as it is."
    )
    changes = list_items(_describe_change(item) for item in answer["items"])
    return join_sentences(head, changes or "No single change is known that would let one in.", _list_unknown(answer))


def _count_waiting(pods: int) -> str:
    return f"{format_count(pods, 'pod')} {'waits' if pods == 1 else 'wait'}"


def _describe_change(change: Json) -> str:
    return f"{change['sentence']['en']} By {_WHO[change['who_acts']]}."


def _list_unknown(answer: Json) -> str:
    unknown = list_items(text["en"] for text in answer["not_known"])
    return f"Not known:\n{unknown}" if unknown else ""


def describe_drain(answer: Json) -> str:
    moves = list_items(map(_describe_move, answer["pods"]))
    return join_sentences(str(answer["sentence"]["en"]), moves, _write_run(answer))


def describe_moves(answer: Json) -> str:
    moves = [move for opened in answer["nodes"] for move in opened["moves"]]
    obstacle = f"The next one waits: {answer['obstacle']['en']}" if answer["obstacle"] else ""
    return join_sentences(
        str(answer["sentence"]["en"]), obstacle, list_items(map(_describe_move, moves)), _write_run(answer)
    )


def _describe_move(pod: Json) -> str:
    why = f": {pod['reason']['en']}" if pod["reason"] else ""
    where = f"goes to {pod['node']}" if pod["node"] else _MOVES[pod["state"]]
    return f"{pod['namespace']}/{pod['name']} ({format_count(pod['devices'], 'device')}) {where}{why}"


def _write_run(answer: Json) -> str:
    budgets = "" if answer["has_budgets"] else "Disruption budgets are not known."
    commands = list_items(answer["commands"])
    return join_sentences(budgets, f"To carry it out, read and run:\n{commands}" if commands else "")


def describe_purchase(answer: Json) -> str:
    kinds = (
        f"{format_count(kind['nodes'], 'node')} like {kind['like']} ({', '.join(kind['models'])}): "
        f"{format_count(kind['pods'], 'pod')} start"
        for kind in answer["to_add"]
    )
    left = (
        f"No added node helps {', '.join(group['names'][:5])}: "
        + (group["reason"]["en"] if group["reason"] else "the reason is not known.")
        for group in answer["not_helped"]
    )
    return join_sentences(str(answer["sentence"]["en"]), list_items(kinds), list_items(left))


def describe_pending(answer: Json) -> str:
    rows = (
        f"{format_count(item['pods'], 'pod')} of {format_count(item['workloads'], 'workload')} "
        f"since {item['first_judged_at']}, {format_gpu_hours(item['gpu_hours'])} GPU-hours: "
        + (item["obstacle"]["sentence"]["en"] if item["obstacle"] else "not known")
        for item in answer["items"]
    )
    head = f"{_count_waiting(answer['pods'])}, for {format_count(answer['total'], 'obstacle')}."
    return join_sentences(head, list_items(rows, answer["total"]))


def describe_trends(answer: Json) -> str:
    head = (
        f"{answer['count']} by {answer['by']} from {answer['since']} to {answer['until']}; levels are means of "
        f"{answer['interval_seconds']} s."
    )
    return join_sentences(head, list_items(map(_describe_series, answer["items"])))


def describe_report(answer: Json) -> str:
    reasons = (
        f"{reason['code']}: {format_count(reason['attempts'], 'attempt')}. {reason['remedy']}"
        for reason in answer.get("obstacles") or answer["reasons"]
    )
    causes = (
        f"{cause['cause'] or 'not known'}: {format_count(cause['pods'], 'pod')}, "
        f"{format_gpu_hours(cause['gpu_hours'])} GPU-hours"
        for cause in answer["waiting"]["causes"]
    )
    gpu_hours = format_gpu_hours(answer["waiting"]["gpu_hours"])
    waiting = f"{_count_waiting(answer['waiting']['pods'])} now, {gpu_hours} GPU-hours:"
    change = answer["best_change"]
    return join_sentences(
        f"{answer['failed']} of {answer['attempts']} attempts failed from {answer['since']} to {answer['until']}; "
        f"{answer['bind_failed']} of them had a node and failed to be bound to it.",
        list_items(reasons),
        f"{waiting}\n{list_items(causes)}" if answer["waiting"]["pods"] else "",
        f"The one change that helps most: {_describe_change(change)}" if change else "",
    )


def _describe_series(series: Json) -> str:
    before = series["total_before"]
    changes = (
        f", from {change['before']:.1f} to {change['after']:.1f} at {change['at']}" for change in series["changes"][-3:]
    )
    return f"{series['key']}: {series['total']}, before {'not known' if before is None else before}{''.join(changes)}"


def describe_node(answer: Json) -> str:
    rows = (
        f"{device['uuid']} {device['model']}: memory {_format_share(device, 'memory', 'mib')} MiB, "
        f"cores {_format_share(device, 'cores', 'percent')} %, {format_count(device['slots_held'], 'slot')} taken, "
        f"held by {_list_holders(device) or 'no pod'}" + _describe_condition(device)
        for device in answer["devices"]
    )
    free = f"{answer['free_devices']} of {format_count(len(answer['devices']), 'device')} free"
    head = f"{answer['node']} at {answer['at']}: {'cordoned, ' if answer['cordoned'] else ''}{free}."
    return join_sentences(head, list_items(rows))


def _describe_condition(device: Json) -> str:
    return (", unhealthy" if device["healthy"] is False else "") + (", cordoned" if device["cordoned"] else "")


def _format_share(device: Json, what: str, unit: str) -> str:
    held, total = device[f"{what}_held_{unit}"], device[f"{what}_total_{unit}"]
    return f"{'?' if held is None else format_number(held)}/{'?' if total is None else format_number(total)}"


def _list_holders(device: Json) -> str:
    names = (f"{pod['namespace']}/{pod['name']}" if pod["name"] else "another namespace" for pod in device["held_by"])
    return ", ".join(dict.fromkeys(names))


def describe_attempts(answer: Json) -> str:
    rows = (
        f"{item['started_at']} {item['namespace']}/{item['name']}: {to_status_word(item['status'])}"
        + (f" on {item['chosen']}" if item["chosen"] else "")
        + f". {item['summary']}"
        for item in answer["items"]
    )
    return join_sentences(f"{format_count(answer['total'], 'attempt')}.", list_items(rows, answer["total"]))
