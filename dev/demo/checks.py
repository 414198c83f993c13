"""``python -m dev.demo --check``: every answer of the scenarios next to the one worked out by hand, one line each."""

from collections.abc import Iterator

from rich.console import Console

from dev.demo import scenarios
from dev.demo.scenarios import ScenarioAnswer
from dev.demo.stack import Stack


def compare_all(running: Stack) -> bool:
    """Print a line for each answer and the difference of a wrong one; return whether all are right."""
    console = create_console()
    answers = [_show_verdict(console, answer) for answer in _iterate_answers(running)]
    right = sum(answers)
    console.print(f"{right} of {len(answers)} answers are the expected ones.", highlight=False)
    return right == len(answers)


def _iterate_answers(running: Stack) -> Iterator[ScenarioAnswer]:
    yield from scenarios.play(running)
    yield from scenarios.compare_sources(running)
    yield from scenarios.compare_messages(running)
    yield scenarios.search(running)


def _show_verdict(console: Console, answer: ScenarioAnswer) -> bool:
    verdict = "[green]right[/]" if answer.is_right else "[bold red]WRONG[/]"
    console.print(f"{verdict}  {answer.pod}: {answer.title}", highlight=False)
    if not answer.is_right:
        console.print(answer.describe_difference(), markup=False, highlight=False)
    return answer.is_right


def create_console() -> Console:
    """Create a console as wide as the terminal; without a terminal, wide enough for a reason on one line."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)
