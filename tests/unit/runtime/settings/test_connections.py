"""Settings of a connection are checked together, before anything connects, and show no secret."""

from pathlib import Path

import pytest

from runtime.errors import SettingError
from runtime.settings.kafka_connection import KafkaConnection, build_kafka_connection
from runtime.settings.opensearch_connection import OpenSearchConnection, build_opensearch_connection
from runtime.settings.settings import read
from tests.support.certificates import a_pair

SCRAM = {"kafka_security_protocol": "SASL_SSL", "kafka_sasl_mechanism": "scram-sha-512", "kafka_username": "worker"}
SECRET = {"kafka_password": "S3cret"}


def read_kafka(**options: object) -> KafkaConnection:
    return read(KafkaConnection, kafka_bootstrap_servers="a:1", **options)


def read_opensearch(**options: object) -> OpenSearchConnection:
    return read(OpenSearchConnection, **({"opensearch_url": "https://a:9200"} | options))


def test_a_password_is_in_no_repr() -> None:
    assert "S3cret" not in repr(read_kafka(**SCRAM, **SECRET))
    assert "S3cret" not in repr(read_opensearch(opensearch_url="https://admin:S3cret@a:9200"))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"kafka_security_protocol": "sasl_ssl"}, "SCHEDULERLOG_KAFKA_SASL_MECHANISM: is missing"),
        (SCRAM, "SCHEDULERLOG_KAFKA_PASSWORD: is missing, SCRAM-SHA-512 needs it"),
        ({"kafka_ca_file": "/ca.crt"}, "SCHEDULERLOG_KAFKA_CA_FILE: has no effect"),
        ({"kafka_username": "worker"}, "SCHEDULERLOG_KAFKA_USERNAME: has no effect"),
        (
            {"kafka_security_protocol": "ssl", "kafka_ca_file": "/absent/ca.crt"},
            "TLS to Kafka: /absent/ca.crt: No such",
        ),
        ({"kafka_security_protocol": "ssl", "kafka_cert_file": "/c"}, "SCHEDULERLOG_KAFKA_KEY_FILE: is missing"),
        (
            {"kafka_security_protocol": "sasl_ssl", "kafka_sasl_mechanism": "OAUTHBEARER"},
            "SCHEDULERLOG_KAFKA_OAUTH_TOKEN_URL: is missing",
        ),
    ],
)
def test_what_kafka_lacks_or_does_not_use_is_named(options: dict[str, object], line: str) -> None:
    with pytest.raises(SettingError) as refused:
        read_kafka(**options)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"opensearch_username": "reader"}, "SCHEDULERLOG_OPENSEARCH_PASSWORD: is missing"),
        ({"opensearch_url": "http://a", "opensearch_ca_file": "/ca"}, "SCHEDULERLOG_OPENSEARCH_CA_FILE: has no effect"),
        ({"opensearch_url": "http://a,https://b"}, "SCHEDULERLOG_OPENSEARCH_URL: http:// and https:// mixed"),
        ({"opensearch_cert_file": "/c"}, "SCHEDULERLOG_OPENSEARCH_KEY_FILE: is missing"),
    ],
)
def test_what_opensearch_lacks_or_does_not_use_is_named(options: dict[str, object], line: str) -> None:
    with pytest.raises(SettingError) as refused:
        read_opensearch(**options)
    assert str(refused.value).startswith(line)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("nothing")
    with pytest.raises(SettingError, match="no certificates in PEM form"):
        read_kafka(kafka_security_protocol="ssl", kafka_ca_file=file)


def test_a_user_in_the_url_is_the_user_unless_another_is_given() -> None:
    connection = read_opensearch(opensearch_url="https://admin:p%40ss@a:9200/search,https://b:9200")
    assert (connection.urls, connection.opensearch_username) == (["https://a:9200/search", "https://b:9200"], "admin")
    assert connection.opensearch_password is not None
    assert connection.opensearch_password.get_secret_value() == "p@ss"


def test_a_plain_connection_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL", "ssl")
    monkeypatch.setenv("SCHEDULERLOG_OPENSEARCH_USERNAME", "reader")
    assert build_kafka_connection("a:1").kafka_ssl_context is None
    assert build_opensearch_connection("http://a").opensearch_username is None


class _Both(OpenSearchConnection, KafkaConnection):
    """Settings of a process that needs both stores."""


def test_of_both_connections_each_has_its_own_tls_and_its_own_checks(tmp_path: Path) -> None:
    ca_file = a_pair(tmp_path).certificate
    addresses = {"opensearch_url": "http://a:9200", "kafka_bootstrap_servers": "a:1"}
    settings = read(_Both, **addresses, kafka_security_protocol="ssl", kafka_ca_file=ca_file)
    assert (settings.kafka_ssl_context is None, settings.opensearch_ssl_context is None) == (False, True)
    with pytest.raises(SettingError, match="TLS to Kafka: /absent: No such"):
        read(_Both, **addresses, kafka_security_protocol="ssl", kafka_ca_file="/absent")
    with pytest.raises(SettingError, match="SCHEDULERLOG_OPENSEARCH_CA_FILE: has no effect"):
        read(_Both, **addresses, opensearch_ca_file="/ca")
