"""The pages of the API list the parameters of the code."""

from pathlib import Path

from api.http.pending_query import PendingQuery
from api.http.query_params import (
    FindingsQuery,
    HistoryQuery,
    NodeOccupancyQuery,
    PodsQuery,
    RefusalsQuery,
    SchedulerlogQuery,
    SearchQuery,
)

PAGES = sorted((Path(__file__).parents[4] / "docs").glob("api*.md"))
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


def test_every_parameter_is_documented() -> None:
    about_pods = (SchedulerlogQuery, HistoryQuery, SearchQuery, PendingQuery, PodsQuery, RefusalsQuery)
    for query in (*about_pods, FindingsQuery, NodeOccupancyQuery):
        for name, field in query.model_fields.items():
            word = field.alias or name
            assert f"`{word}=" in TEXT or f"&{word}=" in TEXT or f"?{word}=" in TEXT, word
