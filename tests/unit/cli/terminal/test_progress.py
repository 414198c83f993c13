"""The line that says how much of a long file was read."""

import io
from pathlib import Path

from cli.terminal.progress import ReadingProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_file_has_a_line_that_is_erased(tmp_path: Path) -> None:
    (file := tmp_path / "hami.log").write_bytes(bytes(4_000_000))
    output, times = Terminal(), iter([0.0, 0.5, 1.5, 1.6, 2.0])
    progress = ReadingProgress(output, lambda: next(times))
    for position in (1_000_000, 2_000_000, 2_500_000, 3_000_000):
        progress.show(file, position)
    progress.erase()
    # Nothing within the first second, and no more than five times in one.
    expected = ["", "Reading hami.log: 2 of 4 MB (50 %)", "Reading hami.log: 3 of 4 MB (75 %)", ""]
    assert output.getvalue().split("\r\x1b[K") == expected


def test_a_pipe_has_no_size_and_a_redirected_output_no_line(tmp_path: Path) -> None:
    output, times = Terminal(), iter([0.0, 2.0])
    ReadingProgress(output, lambda: next(times)).show(Path("-"), 7_000_000)
    assert output.getvalue().endswith("Reading standard input: 7 MB")
    redirected, times = io.StringIO(), iter([0.0, 2.0])
    progress = ReadingProgress(redirected, lambda: next(times))
    progress.show(tmp_path, 7_000_000)
    progress.erase()
    assert redirected.getvalue() == ""
