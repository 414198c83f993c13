"""A diagnosis on the screen: the sentence, cause and remedy, and what is not known."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cli.client.problems import Problem
from cli.terminal.screen import Screen
from schemas.json_types import Json

WHO: Final = {"you": "you", "administrator": "an administrator", "wait": "waiting"}
SHOWN_SUGGESTIONS: Final = 5
WRITTEN_BY_OTHERS: Final = ("attempt", "bind", "event", "pod", "workload", "owner")
"""Kinds of evidence whose words are those of a scheduler, a kubelet, a controller or the API server."""
SHOWN_WORDS: Final = 2
"""Limit of the texts of evidence that are quoted."""
MAX_WORDS: Final = 800
"""Characters of a quoted text; a refusal by kube-scheduler is as long as an event may be, 1,024."""


def show_diagnosis(screen: Screen, diagnosis: Json, suggestions: Json | Problem | None, *, is_wide: bool) -> None:
    """Show the headline, what would fit, cause and remedy, what else is in the way, and what is not known."""
    screen.print_line(diagnosis["headline"]["en"], "bold")
    if background := diagnosis["background"]:
        screen.print_line(background["en"])
    # What helps is the second thing that a reader looks for, before the reasons.
    if isinstance(suggestions, dict) and suggestions["items"]:
        show_suggestions(screen, suggestions)
    if obstacle := diagnosis["obstacle"]:
        screen.skip_line()
        show_obstacle(screen, obstacle)
    if comparison := diagnosis.get("comparison"):
        screen.print_line(comparison["text"]["en"], "dim")
    if excluded_by := diagnosis["excluded_by"]:
        from page.views.translations import write_exclusion

        screen.skip_line()
        screen.print_line(write_exclusion(excluded_by, "en"))
    if others := diagnosis["other_obstacles"]:
        screen.skip_line()
        screen.print_line("Also in the way", "bold")
        for other in others:
            screen.print_line(other["sentence"]["en"], indent=2)
            # What only an administrator can repair is a problem of its own, whatever is done about the first.
            if is_wide or other["who_acts"] == ["administrator"]:
                screen.print_line(other["remedy"]["en"], "dim", indent=4)
    if outlook := diagnosis.get("start"):
        screen.skip_line()
        screen.print_line("When it starts", "bold")
        screen.print_line(outlook["sentence"]["en"], indent=2)
    _show_notes(screen, diagnosis.get("notes") or ())
    _show_not_known(screen, diagnosis["not_known"], is_wide=is_wide)


def _show_notes(screen: Screen, notes: Sequence[Mapping[str, str]]) -> None:
    if notes:
        screen.skip_line()
        screen.print_line("Good to know", "bold")
        for note in notes:
            screen.print_line(note["en"], indent=2)


def show_obstacle(screen: Screen, obstacle: dict[str, Any]) -> None:
    """Show cause and remedy of an obstacle, with its evidence."""
    who = " or ".join(WHO[actor] for actor in obstacle["who_acts"])
    screen.print_line(f"Cause ({obstacle['code']})", "bold")
    screen.print_line(obstacle["likely_cause"]["en"], indent=2)
    screen.print_line(f"Remedy, by {who}", "bold")
    screen.print_line(obstacle["remedy"]["en"], indent=2)
    show_claim_devices(screen, obstacle.get("devices") or [])
    if records := [evidence["record"] for evidence in obstacle["evidence"]]:
        screen.print_line(f"Evidence: {', '.join(records)}", "dim")
    for words in _list_words(obstacle):
        screen.print_line(words, "dim", indent=2)


def _list_words(obstacle: dict[str, Any]) -> list[str]:
    """List what other programs wrote, where the sentence does not quote it, such as a scheduler's counts."""
    sentence = obstacle["sentence"]["en"]
    written = (evidence for evidence in obstacle["evidence"] if evidence.get("kind") in WRITTEN_BY_OTHERS)
    texts = (" ".join((evidence.get("words") or "").split()) for evidence in written)
    listed = dict.fromkeys(text for text in texts if text and text.rstrip(".") not in sentence)
    return [_shorten(text) for text in list(listed)[:SHOWN_WORDS]]


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}…"


def show_claim_devices(screen: Screen, reasons: list[dict[str, Any]]) -> None:
    """Show the devices of a claim by reason, with the values of some of them, and the remedy of each reason."""
    if not reasons:
        return
    total = sum(reason["devices"] for reason in reasons)
    screen.print_line("Devices by reason, the nearest to a fit first", "bold")
    for reason in reasons:
        screen.print_line(f"{reason['devices']}/{total} {reason['reason']}: {reason['meaning']['en']}", indent=2)
        for example in reason["examples"]:
            more = f" (and {example['devices'] - 1} alike)" if example["devices"] > 1 else ""
            screen.print_line(f"{example['device']} on {example['node']}: {example['text']['en']}{more}", indent=4)
        screen.print_line(reason["remedy"]["en"], "dim", indent=4)


def show_suggestions(screen: Screen, suggestions: Json) -> None:
    """Show the changes after each of which the pod fits."""
    screen.skip_line()
    if suggestions["state"] == "fits":
        screen.print_line("It fits as it is, and its bind was stopped", "bold")
    else:
        screen.print_line("It would fit after any one of these; the scheduler's own fit has checked each", "bold")
    for item in suggestions["items"][:SHOWN_SUGGESTIONS]:
        screen.print_line(f"{item['sentence']['en']} ({WHO[item['who_acts']]})", indent=2)


def group_by_cause(texts: Iterable[str]) -> list[str]:
    """Group "Not known: SUBJECT. CAUSE" by what they begin with and by the cause, which several facts share."""
    subjects: dict[tuple[str, str], dict[str, None]] = {}
    for text in texts:
        fact, _, cause = text.partition(". ")
        head, _, subject = fact.partition(": ")
        subjects.setdefault((head, cause), {})[subject] = None
    return [
        ". ".join(filter(None, (": ".join(filter(None, (head, "; ".join(filter(None, names))))), cause)))
        for (head, cause), names in subjects.items()
    ]


def _show_not_known(screen: Screen, not_known: list[dict[str, Any]], *, is_wide: bool) -> None:
    texts = group_by_cause(fact["text"]["en"] for fact in not_known)
    if not texts:
        return
    screen.skip_line()
    if not is_wide:
        subjects = ", ".join(dict.fromkeys(fact["subject"] for fact in not_known))
        screen.print_line(f"Not known: {subjects} (-o wide says why).", "dim")
        return
    for text in texts:
        screen.print_line(text, "dim")
