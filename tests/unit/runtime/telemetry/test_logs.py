import json
import logging

from runtime.telemetry import logs
from runtime.telemetry.logs import RarelyRepeated


def a_record(name: str, text: str) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, text, (), None)


def test_a_complaint_of_a_library_passes_once_and_ours_every_time() -> None:
    rarely = RarelyRepeated()
    assert [rarely.filter(a_record("aiokafka.conn", "no answer")) for _ in range(3)] == [True, False, False]
    assert rarely.filter(a_record("aiokafka.conn", "another"))
    assert all(rarely.filter(a_record("pipeline.worker", "no answer")) for _ in range(3))


def test_libraries_are_quiet_and_some_are_silent() -> None:
    names = ("aiokafka", "httpx", "example.ours")
    before = {name: logging.getLogger(name).level for name in names}
    filters = {handler: list(handler.filters) for handler in logging.getLogger().handlers}
    try:
        logs.configure(quiet=["example.ours"], silent=["aiokafka"])
        levels = [logging.getLogger(name).level for name in names]
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
        for handler, handler_filters in filters.items():
            handler.filters = handler_filters
    assert levels == [logging.CRITICAL, logging.WARNING, logging.WARNING]


def test_a_line_of_json_says_what_it_is_about() -> None:
    record = a_record("pipeline.worker", "attempt %s of %s")
    record.args = ("a1", "llm/web\n\udc80")
    record.__dict__.update(logs.identify_subject(attempt="a1", pod="llm/web", cluster="east"))
    text = logs.JsonLines().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "error", "logger": "pipeline.worker", "message": "attempt a1 of llm/web\n\udc80",
        "attempt": "a1", "pod": "llm/web", "cluster": "east",
    }  # fmt: skip


FORGED = "value.\x1b]0;owned\x07 \x9b31m\n2026-11-21 INFO worker: all is well"


def test_l2_control_characters_of_a_message_are_escaped_and_make_no_line() -> None:
    text = logs.TextLines(logs.FORMAT).format(a_record("pipeline.worker", FORGED))
    assert text.endswith(r"value.\x1b]0;owned\x07 \x9b31m\n2026-11-21 INFO worker: all is well")
    line = logs.JsonLines().format(a_record("pipeline.worker", FORGED))
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text + line)
    assert json.loads(line)["message"] == FORGED
