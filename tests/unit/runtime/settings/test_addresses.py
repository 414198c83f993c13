"""Addresses are read in one way everywhere, and no message shows a password."""

import pytest

from runtime.settings.addresses import (
    HostPort,
    parse_bootstrap_servers,
    parse_host_port,
    parse_listen_address,
    parse_url,
    without_addresses,
    without_user_info,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("kafka:9092", ("kafka", 9092)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("[::1]:9092", ("::1", 9092)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
        (" broker-0.brokers.svc:9092 ", ("broker-0.brokers.svc", 9092)),
    ],
)
def test_a_host_and_a_port_are_read(text: str, address: tuple[str, int]) -> None:
    assert parse_host_port(text) == address
    assert str(parse_host_port(text)) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kafka",
        "kafka:",
        ":9092",
        "kafka:0",
        "kafka:65536",
        "kafka:99999",
        "kafka:-1",
        "kafka:9o92",
        "kafka:٣",
        "::1:9092",
        "[::1]",
        "[::1:9092",
        "http://kafka:9092",
        "kafka:9092/topic",
        "ka fka:9092",
        "tcp://10.0.0.11:9092",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not HOST:PORT: write for example 127\.0\.0\.1:9092$"):
        parse_host_port(text)


def test_a_list_of_brokers_is_read_whole() -> None:
    assert parse_bootstrap_servers("a:1, [::1]:2,b:3") == "a:1,[::1]:2,b:3"
    for text in ("a:1,", "a:1,,b:2", "a:1;b:2"):
        with pytest.raises(ValueError, match=r"is not HOST:PORT"):
            parse_bootstrap_servers(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),  # noqa: S104 - nothing listens
        ("[::]:8080", ("::", 8080)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_an_address_to_listen_on_is_loopback_unless_it_names_a_host(text: str, address: tuple[str, int]) -> None:
    assert parse_listen_address(text) == HostPort(*address)


@pytest.mark.parametrize("text", [":8080", "65536", "host", "tcp://10.0.0.11:9090", "[::1", "-1"])
def test_an_address_to_listen_on_is_refused_otherwise(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not HOST:PORT: write for example 127\.0\.0\.1:8080$"):
        parse_listen_address(text)


def test_a_url_is_read_without_the_slash_at_its_end() -> None:
    assert parse_url("http://127.0.0.1:9200/") == "http://127.0.0.1:9200"
    assert parse_url("https://admin:S3cret@search.example/prefix") == "https://admin:S3cret@search.example/prefix"
    assert parse_url("http://[::1]:9200") == "http://[::1]:9200"


@pytest.mark.parametrize(
    "text",
    [
        "admin:S3cret@opensearch:9200",
        "ftp://u:S3cret@host",
        "http://u:S3cret@",
        "http://u:S3cret@host:port",
        "http://u:S3cret@[::1",
        "http://u:S3cret @host",
        "http://",
        "http://u:S3cret/x@host",
        "http://u:S3cret@h:99999",
        "http://u:S3cret@h:0",
    ],
)
def test_what_is_not_a_url_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a URL: write for example http://127\.0\.0\.1:9200$"):
        parse_url(text)


@pytest.mark.parametrize("read", [parse_host_port, parse_bootstrap_servers, parse_listen_address])
def test_the_user_and_password_before_a_host_are_not_shown(read: object) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match=r"is not HOST:PORT") as refused:
        read("admin:S3cret@kafka:9092")
    assert "S3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OpenSearch at http://admin:S3cret@search:9200: no answer", "OpenSearch at http://search:9200: no answer"),
        ("https://u:p@a:1/x?y=z@b and http://v@c", "https://b and http://c"),
        ("mail admin@example.com", "mail admin@example.com"),
        ("http://plain:9200/path", "http://plain:9200/path"),
    ],
)
def test_urls_are_shown_without_user_information(text: str, expected: str) -> None:
    assert without_user_info(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kafka at a.b:9092,10.0.0.7:9092 does not answer", "Kafka at ADDRESS,ADDRESS does not answer"),
        ("Cannot connect to host ::1:9200 ssl:default", "Cannot connect to host ADDRESS ssl:default"),
        ("Connect call failed ('127.0.0.1', 9200)", "Connect call failed ADDRESS"),
        ("[Errno 111] Connect call failed ('::1', 9200, 0, 0)", "[Errno 111] Connect call failed ADDRESS"),
        ("bootstrap from [('kafka', 9092, <AddressFamily.AF_UNSPEC: 0>)]", "bootstrap from [ADDRESS]"),
        ("GET https://index.internal/path: [fd00::1]:9200", "GET https://ADDRESS/path: ADDRESS"),
        ("HTTP 503: at 2026-11-21T03:06:23.5Z, 12:30:00, 3.8.0: parts 1:2", None),
    ],
)
def test_l6_an_error_is_shown_without_addresses(text: str, expected: str | None) -> None:
    assert without_addresses(text) == (expected or text)


@pytest.mark.parametrize(
    "text", ["http://os:9200/x?token=S3CRET", "https://os:9200?S3CRET", "https://os#S3CRET", "http://os/?"]
)
def test_n18_a_url_with_a_query_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match="has a query") as refused:
        parse_url(text)
    assert "S3CRET" not in str(refused.value)
