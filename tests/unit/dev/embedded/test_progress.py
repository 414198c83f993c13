import io

from rich.console import Console

from dev.embedded.progress import ProgressBar, ProgressLines, create_progress, started


def test_a_log_gets_a_line_every_few_seconds_and_one_at_the_end() -> None:
    lines: list[str] = []
    now = 0.0
    progress = ProgressLines(lines.append, lambda: now)
    with started(progress, files=2, total_bytes=10_000_000):
        for second in range(12):
            now = float(second)
            progress.report("a.jar", second * 500_000)
        progress.report("b.jar", 4_500_000)
    assert lines == ["Downloading 2 jars, 10 MB", "2 of 10 MB", "5 of 10 MB", "10 of 10 MB"]


def test_a_file_that_starts_again_is_counted_once() -> None:
    lines: list[str] = []
    progress = ProgressLines(lines.append, lambda: 0.0)
    with started(progress, files=1, total_bytes=10_000_000):
        progress.report("a.jar", 9_000_000)
        progress.report("a.jar", 0)
        progress.report("a.jar", 9_000_000)
    assert lines == ["Downloading 1 jars, 10 MB"]


def test_a_terminal_gets_a_bar() -> None:
    screen = io.StringIO()
    progress = create_progress(Console(file=screen, force_terminal=True, width=100))
    assert isinstance(progress, ProgressBar)
    with started(progress, files=2, total_bytes=10_000_000):
        progress.report("a.jar", 4_000_000)
        progress.note("something [odd]")
    assert "Downloading 2 jars" in screen.getvalue()
    assert "something [odd]" in screen.getvalue()


def test_no_terminal_gets_lines() -> None:
    assert isinstance(create_progress(Console(file=io.StringIO())), ProgressLines)
