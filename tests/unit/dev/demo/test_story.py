"""Alerts in the story of the demo, from answers of the API in its documented form."""

from dev.demo.reader import Reader
from dev.demo.story import format_alert
from schemas.json_types import Json


class AnsweringReader(Reader):
    """A reader whose API answers with these alerts, the first time with none."""

    def __init__(self, *alerts: Json) -> None:
        super().__init__("", "")
        self._answers: list[Json] = [{"items": []}, {"items": list(alerts)}]

    def get(self, path: str, **_query: str) -> Json:
        assert path == "/api/v1/alerts"
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def an_alert(state: str, severity: str, summary: str) -> Json:
    return {"rule": "RegistrationLost", "state": state, "severity": severity, "summary": summary}


def test_the_first_alert_that_fires_is_shown() -> None:
    ended = an_alert("resolved", "critical", "It is over.")
    reader = AnsweringReader(ended, an_alert("firing", "warning", "Few are free."), an_alert("firing", "info", "Old."))
    assert list(format_alert(reader)) == ["", "2 alerts fire; one of them:", "  warning  Few are free."]
