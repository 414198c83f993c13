from client.server_events import ServerEvent, server_events

# The examples of https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
STOCKS = b"data: YHOO\ndata: +2\ndata: 10\n\n"
BLOCKS = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"


def events(text: bytes) -> list[ServerEvent]:
    return list(server_events(text.splitlines(keepends=True)))


def test_lines_of_data_are_one_text() -> None:
    assert events(STOCKS) == [ServerEvent("message", "YHOO\n+2\n10", "")]


def test_comments_are_no_events_and_one_space_is_left_out() -> None:
    found = [(event.data, event.id) for event in events(BLOCKS)]
    assert found == [("first event", "1"), ("second event", ""), (" third event", "")]


def test_an_event_has_its_kind() -> None:
    assert events(b"event: changed\r\ndata: {}\r\n\r\n") == [ServerEvent("changed", "{}", "")]


def test_an_event_that_the_end_cuts_off_is_none() -> None:
    assert events(b"data: whole\n\ndata: half") == [ServerEvent("message", "whole", "")]
