"""Credentials are read from a kubeconfig, and nothing of them is left in the temporary folder."""

import tempfile
from pathlib import Path

import pytest

from dev.embedded.control_plane.credentials import build_kubeconfig
from runtime.http.certificate_authority import Authority
from runtime.kubernetes.credentials import ApiCredentials, from_kubeconfig


async def test_certificates_in_a_kubeconfig_are_not_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L5 too: no public authority is trusted besides, which could sign for the cluster's name."""
    temporary, file = tmp_path / "temporary", tmp_path / "kubeconfig"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    authority = Authority.create("the tests' authority")
    file.write_text(build_kubeconfig("https://127.0.0.1:6443", authority.certificate_pem.decode(), "secret"))
    credentials = await ApiCredentials.open(from_kubeconfig(file))
    assert credentials.tls is not None
    (trusted,) = credentials.tls.get_ca_certs()
    assert "the tests' authority" in str(trusted)
    assert list(temporary.iterdir()) == []
    # Read again: the copy that was removed is written again.
    await credentials.renew()
    assert await credentials.get_authorization() == "Bearer secret"
    assert list(temporary.iterdir()) == []
