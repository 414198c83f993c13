"""Log lines about a record: they name it by its headers, since its value may be what can't be read."""

from runtime.kafka.record import identify_record

TYPE = b"io.schedulerlog.bind.concluded.v1"


def test_a_record_of_an_attempt_names_the_attempt_and_the_pod() -> None:
    headers = [("ce_type", TYPE), ("ce_id", b"a1/bind/17"), ("ce_subject", b"llm/web")]
    assert identify_record(headers) == {"attempt": "a1", "pod": "llm/web"}


def test_a_record_about_a_pod_alone_names_no_attempt() -> None:
    headers = [("ce_type", b"io.schedulerlog.pod.observed.v1"), ("ce_id", b"x/y/1"), ("ce_subject", b"llm/web")]
    assert identify_record(headers) == {"pod": "llm/web"}


def test_headers_that_are_anything_are_neither_an_error_nor_a_long_line() -> None:
    assert identify_record(None) == identify_record([("ce_type", b"\xff")]) == {}
    node = [("ce_type", b"io.schedulerlog.node.observed.v1"), ("ce_id", b"a1/x"), ("ce_subject", b"node1")]
    assert identify_record(node) == {}
    foreign: list[tuple[str, bytes]] = [("ce_type", TYPE), ("ce_id", None), ("ce_subject", b"\xff" * 10**6)]  # type: ignore[list-item]
    assert identify_record(foreign) == {"pod": "\ufffd" * 400}
