"""Files of a control plane: credentials, and a note of what runs."""

import ssl
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from typer.testing import CliRunner

from dev.embedded.__main__ import app
from dev.embedded.control_plane.credentials import Credentials
from dev.embedded.control_plane.state import create_records, read_records, write_records
from dev.embedded.errors import EmbeddedError
from dev.embedded.ports import KUBERNETES_PORTS
from runtime.http.certificate_authority import Authority


def test_credentials_are_created_once_and_then_kept(tmp_path: Path) -> None:
    files = Credentials(tmp_path)
    files.write()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    files.write()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_other_users_may_not_read_them(tmp_path: Path) -> None:
    Credentials(tmp_path / "credentials").write()
    assert (tmp_path / "credentials").stat().st_mode & 0o077 == 0


def test_a_kubeconfig_names_the_server_and_carries_the_users_token(tmp_path: Path) -> None:
    files = Credentials(tmp_path)
    files.write()
    files.write_kubeconfigs("https://127.0.0.1:16443")
    document = yaml.safe_load(files.locate_kubeconfig("admin").read_text())
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:16443"
    assert document["users"][0]["user"] == {"token": files.read_token("admin")}
    assert files.read_token("admin") != files.read_token("scheduler")


def test_an_issued_certificate_is_good_for_this_machine_under_its_authority(tmp_path: Path) -> None:
    authority = Authority.create("an authority")
    pem, key = authority.issue("a server")
    certificate = x509.load_pem_x509_certificate(pem)
    certificate.verify_directly_issued_by(authority.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    (tmp_path / "tls.crt").write_bytes(pem)
    (tmp_path / "tls.key").write_bytes(key)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")


def test_what_runs_is_remembered(tmp_path: Path) -> None:
    records = create_records()
    write_records(tmp_path, records)
    assert read_records(tmp_path) == records


def test_every_program_gets_ports_of_its_own() -> None:
    ports = [port for record in create_records() for port in (record.port, record.peer_port)]
    assert len(set(ports)) == len(ports)
    assert all(port in KUBERNETES_PORTS for port in ports)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": "sshd"}]', '[{"name": "etcd", "port": "x"}]'])
def test_a_state_file_that_cannot_be_understood_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(EmbeddedError, match=r"state\.json"):
        read_records(tmp_path)


def test_status_of_a_folder_where_nothing_was_started_is_a_failure(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["kubernetes", "status", "--dir", str(tmp_path)])
    assert done.exit_code == 1


def test_env_of_a_folder_where_nothing_runs_says_how_to_start(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["kubernetes", "env", "--dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "kubernetes up" in str(done.exception)


def test_down_where_nothing_is_does_nothing(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["kubernetes", "down", "--dir", str(tmp_path / "none")]).exit_code == 0
    assert not (tmp_path / "none").exists()
