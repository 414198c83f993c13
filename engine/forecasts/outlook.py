"""The answer to when a pod starts and what comes before it, from its forecast and the record of forecasts. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from engine.diagnosis.texts import write_phrase
from engine.forecasts.first_end import MIN_HOLDS
from schemas.answers.diagnosis import InBothLanguages, StartOutlook
from schemas.codec.records import format_rfc3339
from schemas.forecasts import MAX_JUDGED, MIN_JUDGED, MIN_PERCENT_RIGHT, Basis, ForecastRecord, StartForecast
from schemas.placements import PodPlacement

MAX_NAMES: Final = 5


class PodsBefore(NamedTuple):
    """Waiting pods that come first, or are level with the pod, and that want devices of the same models."""

    number: int
    names: Sequence[str]
    """NAMESPACE/NAME of the first of them, at most ``MAX_NAMES``."""
    is_current: bool
    """False where the list lacks the pod itself, so that it may lack others."""


def count_right(placements: Iterable[PodPlacement], basis: Basis) -> ForecastRecord:
    """Count the forecasts of one basis that starts have judged. placements: the latest first."""
    judged = [
        is_right
        for placement in placements
        for forecast in reversed(placement.forecasts)
        if forecast.basis == basis and (is_right := forecast.judge(placement.started_at)) is not None
    ][:MAX_JUDGED]
    return ForecastRecord(sum(judged), len(judged))


def build_outlook(
    before: PodsBefore, forecast: StartForecast | None, record: ForecastRecord, now: datetime
) -> StartOutlook | None:
    """Build the answer; None where nothing comes before the pod and no forecast was made.

    record: of the forecast's basis.
    """
    if forecast is None and not before.number:
        return None
    outlook = StartOutlook(
        sentence=_write_sentence(before, forecast, record, now),
        earliest=None,
        latest=None,
        given_at=format_rfc3339(forecast.given_at) if forecast else None,
        basis=forecast.basis if forecast else "",
        after=forecast.after[:MAX_NAMES] if forecast and not forecast.missing else [],
        before=before.number,
        names_before=list(before.names),
        right=record.right,
        judged=record.judged,
    )
    if forecast is None or not _is_shown(before, forecast, record, now):
        return outlook
    times = (forecast.earliest, forecast.latest)
    earliest, latest = (format_rfc3339(moment) if moment else None for moment in times)
    return outlook.model_copy(update={"earliest": earliest, "latest": latest})


def _is_shown(before: PodsBefore, forecast: StartForecast, record: ForecastRecord, now: datetime) -> bool:
    is_first = before.is_current and not before.number
    return is_first and record.is_proved and forecast.latest is not None and now <= forecast.latest


def _write_sentence(
    before: PodsBefore, forecast: StartForecast | None, record: ForecastRecord, now: datetime
) -> InBothLanguages:
    if before.number or forecast is None:
        more = before.number - len(before.names)
        names = _join(before.names, more)
        return write_phrase("start_before", count=before.number, names=names)
    missing = forecast.missing if before.is_current else "order"
    if missing or forecast.latest is None or forecast.earliest is None:
        return write_phrase(f"start_no_{missing}", names=_join(forecast.after, 0), needed=MIN_HOLDS)
    numbers = {"right": record.right, "judged": record.judged}
    if not record.is_proved:
        return write_phrase("start_unproved", percent=MIN_PERCENT_RIGHT, needed=MIN_JUDGED, **numbers)
    if now > forecast.latest:
        return write_phrase("start_passed", latest=_format_time(forecast.latest), **numbers)
    return write_phrase(
        "start_interval",
        earliest=_format_time(forecast.earliest),
        latest=_format_time(forecast.latest),
        count=len(forecast.after),
        names=_join(forecast.after[:MAX_NAMES], len(forecast.after) - MAX_NAMES),
        **numbers,
    )


def _join(names: Sequence[str], more: int) -> InBothLanguages:
    listed = ", ".join(names)
    if more <= 0:
        return InBothLanguages(en=listed, zh=listed)
    return InBothLanguages(en=f"{listed} and {more:,} more", zh=f"{listed} 等")


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
