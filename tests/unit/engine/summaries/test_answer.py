"""The answer against JSON written by hand from the proposal and the rules of HAMi."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.answer import build_detail, build_schedulerlog, encode_schedulerlog, select_nodes
from schemas.answers.attempts import FullSchedulerLog, Paging, SchedulerLog
from schemas.events import AttemptSummarized, BindOutcome, LockHolder, Owner, PodDescription, Refusal, Request
from tests.support.builders.events import STARTED, a_refusal, a_report, a_request, a_summary

CONTAINERS = [a_request(container="container1"), a_request(container="container2")]


def build_proposals_attempt(**fields: Any) -> AttemptSummarized:
    """Build three nodes as in the proposal, published out of order."""
    refusals = [
        a_refusal(CardInsufficientMemory=4, CardUuidMismatch=3, CardInsufficientCore=1),
        a_refusal(NumaNotFit=2, CardInsufficientMemory=3, CardInsufficientCore=2, ExclusiveDeviceAllocateConflict=1),
    ]
    plain: dict[str, Any] = {
        "requests": CONTAINERS,
        "ended_at": STARTED,
        "fit_nodes": 1,
        "chosen": "node3",
        "bind": BindOutcome(
            node="node3",
            bound=False,
            error="Failed to lock node, node aio-node15 has been locked within 5min",
            ended_at=STARTED,
        ),
        "verdicts": ["picked", "refused"],
        "refusals": refusals,
        "verdict": [0, 1, 1],
        "score": [2.354, 0.0, 0.0],
        "refused_by": [-1, 0, 1],
        "refusal": [-1, 1, 0],
    }
    return a_summary(("node3", "node1", "node2"), **(plain | fields))


def test_the_proposals_example_comes_out_field_for_field() -> None:
    # The proposal's own text, with the reasons in HAMi's order (the strings sorted) and the filter's event message.
    expected = """
    {
        "status": "failed",
        "filter": {
            "status": "passed",
            "summary": "find fit node(node3), 2 nodes not fit, 1 nodes fit(node3:2.35)",
            "nodes": [
                {
                    "name": "node1",
                    "status": "failed",
                    "score": 0,
                    "containers": [
                        {
                            "name": "container1",
                            "status": "failed",
                            "reason": "1/8 ExclusiveDeviceAllocateConflict, 2/8 CardInsufficientCore, 2/8 NumaNotFit, 3/8 CardInsufficientMemory"
                        }
                    ]
                },
                {
                    "name": "node2",
                    "status": "failed",
                    "score": 0,
                    "containers": [
                        {"name": "container1", "status": "passed"},
                        {
                            "name": "container2",
                            "status": "failed",
                            "reason": "1/8 CardInsufficientCore, 3/8 CardUuidMismatch, 4/8 CardInsufficientMemory"
                        }
                    ]
                },
                {
                    "name": "node3",
                    "status": "passed",
                    "score": 2.35,
                    "containers": [
                        {"name": "container1", "status": "passed"},
                        {"name": "container2", "status": "passed"}
                    ]
                }
            ]
        },
        "bind": {
            "status": "failed",
            "summary": "Failed to lock node, node aio-node15 has been locked within 5min"
        }
    }
    """  # noqa: E501
    published = encode_schedulerlog(build_proposals_attempt())
    # Re-serialized, so that the order of fields and 0 against 0.0 count too.
    assert published == orjson.dumps(orjson.loads(expected))


def test_a_node_that_was_never_registered_fails_at_the_first_container_that_asks_for_devices() -> None:
    summary = a_summary(
        ("node7", "node8"),
        requests=[a_request(container="sidecar", count=0), a_request(container="worker")],
        verdicts=["unregistered"],
        refusals=[
            Refusal(bare="node unregistered"),
            Refusal(bare="node unregistered", cause="hami.io/node-nvidia-register: not JSON"),
        ],
        refused_by=[-1, -1],
        refusal=[0, 1],
    )
    nodes = orjson.loads(encode_schedulerlog(summary))["filter"]["nodes"]
    assert nodes[0]["containers"] == [
        {"name": "sidecar", "status": "passed"},
        {"name": "worker", "status": "failed", "reason": "node unregistered"},
    ]
    assert nodes[1]["containers"][1]["reason"] == "node unregistered: hami.io/node-nvidia-register: not JSON"


@pytest.mark.parametrize(
    ("source", "counts", "container"),
    [
        # Of two containers that ask, a log does not say which was refused; a scheduler judges the first one first.
        ("hami-log", (1, 1), ""),
        ("scheduler", (1, 1), "first"),
        ("hami-log", (1, 0), "first"),
        ("hami-log", (0, 1), "second"),
    ],
)
def test_the_refused_container_is_named_if_the_source_says_which(
    source: str, counts: tuple[int, int], container: str
) -> None:
    requests = [a_request(container=name, count=count) for name, count in zip(("first", "second"), counts, strict=True)]
    attempt = a_summary(["node1"], refused_by=[-1], requests=requests, reports=[a_report(source=source)])
    (node,) = build_schedulerlog(attempt).filter.nodes
    assert [row.name for row in node.containers if row.status == "failed"] == [container]


def test_nodes_that_were_not_reached_are_left_out_and_counted_in_the_detail() -> None:
    summary = a_summary(verdicts=["refused", "not reached"], verdict=[0, 1], refused_by=[0, -1], refusal=[0, -1])
    assert [node.name for node in build_schedulerlog(summary).filter.nodes] == ["node1"]
    assert build_detail(summary).not_reached_nodes == 1


def test_the_detail_has_the_score_terms_of_the_named_nodes_that_fit_else_of_the_chosen_one() -> None:
    terms = {"slots": [0.0, 0.25, 0.5], "memory": [0.0, 0.4, 0.35]}
    summary = a_summary(
        ("a", "b", "c"), verdict=[0, 1, 2], refused_by=[0, -1, -1], refusal=[0, -1, -1], chosen="c",
        score=[0.0, 0.65, 0.85], score_terms=terms,
    )  # fmt: skip
    (chosen,) = build_detail(summary).scores
    assert (chosen.node, chosen.score, chosen.terms) == ("c", 0.85, {"slots": 0.5, "memory": 0.35})
    assert [score.node for score in build_detail(summary, ["a", "b", "zzz"]).scores] == ["b"]
    assert build_detail(a_summary()).scores == []


def test_the_detail_says_who_held_the_lock_and_where_the_pod_comes_from() -> None:
    holder = LockHolder(pod="llm/qwen-0", locked_at=STARTED)
    bind = BindOutcome(node="node3", bound=False, error="locked", lock_holder=holder, ended_at=STARTED)
    description = PodDescription(owners=[Owner(kind="Job", name="train")])
    full = build_detail(
        a_summary(bind=bind, description=description, may_duplicate=["5e" * 16], first_judged_at=STARTED)
    )
    assert full.bind is not None
    assert full.bind.lock_holder == holder
    assert full.description == description
    assert (full.may_duplicate, full.first_judged_at) == (["5e" * 16], "2026-11-21T03:06:23.217054Z")


def test_an_attempt_that_failed_before_it_judged_says_the_error() -> None:
    fields = "calcScore failed boom for pod llm/deepseek-a"
    summary = a_summary((), error=fields, ended_at=STARTED, refusals=[], offered_nodes=5)
    assert orjson.loads(encode_schedulerlog(summary)) == {
        "status": "failed",
        "filter": {"status": "failed", "summary": fields, "nodes": []},
        "bind": {"status": "", "summary": ""},
    }


def test_an_attempt_known_by_its_bind_alone_has_an_empty_filter() -> None:
    bind = BindOutcome(node="node3", bound=True, ended_at=STARTED)
    summary = a_summary((), status="succeeded", requests=[], refusals=[], chosen="node3", bind=bind)
    assert orjson.loads(encode_schedulerlog(summary)) == {
        "status": "succeeded",
        "filter": {"status": "", "summary": "", "nodes": []},
        "bind": {"status": "passed", "summary": "Successfully binding node [node3] to llm/deepseek-a"},
    }


def test_a_filter_that_passed_waits_for_its_bind() -> None:
    published = build_schedulerlog(build_proposals_attempt(status="pending", bind=None))
    assert (published.status, published.filter.status, published.bind.status, published.bind.summary) == (
        "pending",
        "passed",
        "",
        "",
    )


def test_an_attempt_whose_end_is_not_known_says_so_and_shows_what_was_judged() -> None:
    published = build_schedulerlog(a_summary(status="pending", complete=False, missing="its conclusion", ended_at=None))
    assert published.filter.status == ""
    assert "its conclusion" in published.filter.summary
    assert [node.status for node in published.filter.nodes] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("score", "text"),
    [(0.0, "0"), (4.0, "4"), (2.354, "2.35"), (11.577, "11.58"), (3.9, "3.9"), (-0.001, "0")],
)
def test_a_score_is_rounded_to_two_decimals_and_written_as_go_writes_it(score: float, text: str) -> None:
    summary = a_summary(("node1",), verdict=[2], score=[score], refused_by=[-1], refusal=[-1])
    fields = encode_schedulerlog(summary)
    start = fields.index(b'"score":') + 8
    assert fields[start : fields.index(b",", start)].decode() == text


def test_names_narrow_the_nodes_and_unknown_ones_match_nothing() -> None:
    summary = build_proposals_attempt()
    chosen = select_nodes(summary, nodes=["node3", "node99"])
    assert [summary.nodes[row] for row in chosen.rows] == ["node3"]
    assert chosen.total == 1


def test_status_narrows_the_nodes() -> None:
    summary = build_proposals_attempt()
    by_status = {
        status: [summary.nodes[row] for row in select_nodes(summary, status=status).rows]
        for status in ("passed", "failed")
    }
    assert by_status == {"passed": ["node3"], "failed": ["node1", "node2"]}


NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True), unique=True, max_size=30)


@given(NAMES, st.integers(1, 7))
def test_pages_put_together_are_the_whole_list_sorted_by_name(names: list[str], limit: int) -> None:
    summary = a_summary(names)
    seen: list[str] = []
    after = None
    for _ in range(len(names) + 1):
        page = select_nodes(summary, after=after, limit=limit)
        assert page.total == len(names)
        assert len(page.rows) <= limit
        seen += [summary.nodes[row] for row in page.rows]
        after = page.last
        if after is None:
            break
    assert after is None
    assert seen == sorted(names)


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=5).filter(lambda text: text.encode("utf-8", "ignore").decode() == text),
            st.integers(0, 4),
            st.floats(0, 1e6, width=32),
            st.integers(-1, 1),
            st.integers(-1, 1),
        ),
        unique_by=lambda row: row[0],
    )
)
def test_whatever_the_verdicts_are_the_answer_is_one_by_its_model(rows: list[tuple[str, int, float, int, int]]) -> None:
    names, verdict, score, refused_by, refusal = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    summary = a_summary(
        names,
        requests=CONTAINERS,
        verdicts=["picked", "fits", "refused", "unregistered", "not reached"],
        refusals=[a_refusal(NumaNotFit=8), Refusal(bare='say "no"\n')],
        verdict=list(verdict),
        score=list(score),
        refused_by=list(refused_by),
        refusal=list(refusal),
    )
    published = SchedulerLog.model_validate_json(encode_schedulerlog(summary))
    assert [node.name for node in published.filter.nodes] == sorted(row[0] for row in rows if row[1] != 4)


def test_the_detail_stands_beside_the_proposals_fields() -> None:
    paging = Paging.model_validate({"total": 3, "continue": None}).model_dump(by_alias=True)
    beside = {"detail": build_detail(build_proposals_attempt()), "paging": paging, "devices": None, "devices_note": ""}
    published = orjson.loads(encode_schedulerlog(build_proposals_attempt(), None, beside))
    assert list(published) == ["status", "filter", "bind", "detail", "paging", "devices", "devices_note"]
    full = FullSchedulerLog.model_validate(published)
    assert full.detail.reasons == {
        "CardInsufficientCore": 2,
        "CardInsufficientMemory": 2,
        "CardUuidMismatch": 1,
        "ExclusiveDeviceAllocateConflict": 1,
        "NumaNotFit": 1,
    }
    assert full.detail.requests == [Request.model_validate(container.__dict__) for container in CONTAINERS]
