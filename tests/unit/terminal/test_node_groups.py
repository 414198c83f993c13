from terminal.node_groups import alike_nodes

REASON = "3/8 AllocatedCardsInsufficientRequest, 5/8 CardInsufficientCore"


def refused(name: str, reason: str) -> dict[str, object]:
    return {
        "name": name,
        "status": "failed",
        "score": 0,
        "containers": [{"name": "c", "status": "failed", "reason": reason}],
    }


def passed(name: str, score: float) -> dict[str, object]:
    return {"name": name, "status": "passed", "score": score, "containers": [{"name": "c", "status": "passed"}]}


def test_nodes_that_were_refused_alike_are_one_row() -> None:
    nodes = [refused(f"node{number}", REASON) for number in range(4_000)]
    nodes += [refused("odd", "8/8 CardTypeMismatch"), passed("a", 0.5), passed("b", 0.25), passed("best", 0.85)]
    found = [(each.verdict, each.why, len(each.names)) for each in alike_nodes(nodes, "best")]
    assert found == [
        ("chosen", "score 0.85", 1),
        ("fits", "scores 0.25 to 0.5", 2),
        ("refused", f"c: {REASON}", 4_000),
        ("refused", "c: 8/8 CardTypeMismatch", 1),
    ]
    assert alike_nodes(nodes, "best")[2].shown_names == "node0, node1, node2 +3,997"


def test_an_attempt_without_nodes_has_no_rows() -> None:
    assert alike_nodes([], None) == []
