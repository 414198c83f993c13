"""Settings come from the environment; a mistake is one line that names the variable and not its value."""

import re

import pytest

from runtime.errors import SettingError
from runtime.settings.addresses import HostPort
from runtime.settings.settings import BootstrapServers, EnvironmentSettings, ListenAddress, Url, read


class Example(EnvironmentSettings):
    kafka_bootstrap_servers: BootstrapServers
    """Addresses of any brokers."""
    opensearch_url: Url = "http://127.0.0.1:9200"
    api_listen: ListenAddress = HostPort("127.0.0.1", 9090)
    workers: int = 1


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Example.model_fields:
        monkeypatch.delenv(f"SCHEDULERLOG_{name.upper()}", raising=False)
    monkeypatch.setenv("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS", "[::1]:9092,b:1")


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERLOG_API_LISTEN", "[::]:80")
    settings = read(Example)
    assert (settings.kafka_bootstrap_servers, settings.api_listen) == ("[::1]:9092,b:1", HostPort("::", 80))


def test_what_is_given_comes_before_the_environment_unless_it_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERLOG_WORKERS", "2")
    assert (read(Example, workers=3).workers, read(Example, workers=None).workers) == (3, 2)


def test_a_missing_setting_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS")
    missing = "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set: Addresses of any brokers."
    with pytest.raises(SettingError, match=re.escape(missing)):
        read(Example)


@pytest.mark.parametrize("name", ["KAFKA_BOOTSTRAP_SERVERS", "OPENSEARCH_URL", "API_LISTEN", "WORKERS"])
@pytest.mark.parametrize(
    "value", ["admin:S3cret@opensearch:9200", "http://admin:S3cret@", "http://admin:S3cret@h:port"]
)
def test_a_password_is_never_shown(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"SCHEDULERLOG_{name}", value)
    with pytest.raises(SettingError, match=f"^SCHEDULERLOG_{name}: ") as refused:
        read(Example)
    assert "S3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_variables_that_kubernetes_makes_up_for_services_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(Example)
    for service in ("API", "KAFKA", "OPENSEARCH", "WORKERS", "METRICS"):
        for name, value in build_service_variables(f"SCHEDULERLOG_{service}").items():
            monkeypatch.setenv(name, value)
    assert read(Example) == before


def build_service_variables(service: str) -> dict[str, str]:
    """Build the variables that the kubelet gives every pod for a Service at port 9090."""
    return {
        f"{service}_SERVICE_HOST": "10.0.0.11",
        f"{service}_SERVICE_PORT": "9090",
        f"{service}_SERVICE_PORT_HTTP": "9090",
        f"{service}_PORT": "tcp://10.0.0.11:9090",
        f"{service}_PORT_9090_TCP": "tcp://10.0.0.11:9090",
        f"{service}_PORT_9090_TCP_PROTO": "tcp",
        f"{service}_PORT_9090_TCP_PORT": "9090",
        f"{service}_PORT_9090_TCP_ADDR": "10.0.0.11",
    }
