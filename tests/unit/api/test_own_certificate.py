"""The certificate that the command makes: kept while it is long valid, renewed before its end, never another's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from api.own_certificate import CA, CERTIFICATE, KEY, write_files
from runtime.http.certificate_authority import Authority

NAMES = ("schedulerlog-api", "127.0.0.1")
LONGEST = timedelta(days=398)
"""Longest lifetime of a certificate that Apple's clients take."""


def read_lifetime(folder: Path) -> timedelta:
    certificate = x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes())
    return certificate.not_valid_after_utc - certificate.not_valid_before_utc


@pytest.mark.parametrize(
    ("days", "outcome"), [(0, "unchanged"), (330, "unchanged"), (340, "renewed"), (500, "renewed")]
)
def test_a_certificate_is_renewed_in_its_last_sixty_days(tmp_path: Path, days: int, outcome: str) -> None:
    assert write_files(tmp_path, NAMES) == "made"
    assert read_lifetime(tmp_path) < LONGEST
    before = {name: (tmp_path / name).read_bytes() for name in (CA, CERTIFICATE, KEY)}
    assert write_files(tmp_path, NAMES, datetime.now(UTC) + timedelta(days=days)) == outcome
    is_new = {name: (tmp_path / name).read_bytes() != content for name, content in before.items()}
    assert set(is_new.values()) == {outcome == "renewed"}


def test_the_authority_before_is_trusted_until_the_next_renewal(tmp_path: Path) -> None:
    authorities = []
    for number in range(3):
        write_files(tmp_path, NAMES, datetime.now(UTC) + timedelta(days=380 * number))
        authorities.append(x509.load_pem_x509_certificates((tmp_path / CA).read_bytes()))
    assert [len(trusted) for trusted in authorities] == [1, 2, 2]
    assert authorities[1][1] == authorities[0][0]
    assert authorities[2][1] == authorities[1][0]


def test_a_certificate_of_another_authority_is_unchanged(tmp_path: Path) -> None:
    certificate, _ = Authority.create("company").issue("api", NAMES, lifetime=timedelta(days=1))
    (tmp_path / CERTIFICATE).write_bytes(certificate)
    assert write_files(tmp_path, NAMES) == "unchanged"
    assert (tmp_path / CERTIFICATE).read_bytes() == certificate
