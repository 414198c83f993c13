"""A certificate is followed while it changes, and a broken one never takes the place of a good one."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates
from tests.support.certificates import Secret, a_pair


def read_served_name(context: ssl.SSLContext, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> str:
    """Return the common name that a client sees which names no server, as kube-scheduler does for an IP address."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    asking.minimum_version = asking.maximum_version = version
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = asking.wrap_bio(down, up), context.wrap_bio(up, down, server_side=True)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = client.getpeercert(binary_form=True)
    assert certificate
    (name,) = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(name.value)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_secret_swapped_through_its_link_is_served_from_the_next_handshake_on(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    secret = Secret(tmp_path / "secret")
    certificates = Certificates(secret.pair)
    assert read_served_name(certificates.context, version) == "one"
    secret.swap("two")
    certificates.reload()
    assert read_served_name(certificates.context, version) == "two"
    assert (certificates.problem, certificates.reloads) == ("", 1)


def test_files_that_remain_the_same_are_not_loaded_again(tmp_path: Path) -> None:
    certificates = Certificates(a_pair(tmp_path))
    certificates.reload()
    assert certificates.reloads == 0


def test_a_pair_that_breaks_is_named_and_the_old_one_remains_until_it_is_whole_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = a_pair(tmp_path)
    certificates = Certificates(pair)
    pair.key.write_bytes(a_pair(tmp_path / "other", "two").key.read_bytes())
    for _ in range(3):
        certificates.reload()
    assert read_served_name(certificates.context) == "one"
    assert certificates.problem == f"--key-file: {pair.key} is not the key of the certificate in {pair.certificate}"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    pair.certificate.write_bytes((tmp_path / "other" / "tls.crt").read_bytes())
    certificates.reload()
    assert read_served_name(certificates.context) == "two"
    assert certificates.problem == ""


def test_files_that_vanish_leave_the_old_pair_in_force(tmp_path: Path) -> None:
    pair = a_pair(tmp_path)
    certificates = Certificates(pair)
    pair.certificate.unlink()
    certificates.reload()
    assert read_served_name(certificates.context) == "one"
    assert certificates.problem == f"--cert-file: {pair.certificate} can't be read: No such file or directory"


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    pair = a_pair(tmp_path)
    with pytest.raises(BrokenPairError, match=f"--cert-file: {pair.key} holds no certificate in PEM form"):
        Certificates(CertificatePair(pair.key, pair.key))


def test_a_key_that_is_none_is_named(tmp_path: Path) -> None:
    pair = a_pair(tmp_path)
    with pytest.raises(BrokenPairError, match=f"--key-file: {pair.certificate} holds no private key in PEM form"):
        Certificates(CertificatePair(pair.certificate, pair.certificate))


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(tmp_path: Path) -> None:
    pair = a_pair(tmp_path, passphrase=b"secret")
    with pytest.raises(BrokenPairError, match=f"--key-file: {pair.key} needs a passphrase"):
        Certificates(pair)


def test_a_certificate_cut_in_the_middle_is_named(tmp_path: Path) -> None:
    pair = a_pair(tmp_path)
    pair.certificate.write_bytes(pair.certificate.read_bytes()[:200])
    with pytest.raises(BrokenPairError, match=f"--cert-file {pair.certificate}, --key-file {pair.key}: can't be used"):
        Certificates(pair)
