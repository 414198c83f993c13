"""Whom the sniffer's gRPC service lets in, and the certificate that it shows, which may be replaced while it runs."""

import logging
from functools import partial

import grpc

from ingest.errors import MistakeError
from ingest.reading.options import GrpcOptions
from runtime.http.server_tls import BrokenPairError, CertificatePair
from runtime.log_once import LoggedProblem
from runtime.settings.addresses import HostPort

log = logging.getLogger(__name__)

_FILES = "--cert-file, --key-file and --client-ca-file"


def server_credentials(address: HostPort, asked: GrpcOptions) -> grpc.ServerCredentials | None:
    """None where the service is to be plain. Raises ``MistakeError`` for files that can't be used, and for an address
    beyond loopback where everybody could report about pods."""
    if not asked.insecure and not address.is_loopback and not asked.client_ca_file:
        raise MistakeError(f"who reaches {address} could report whatever they like about pods: {_FILES}, or --insecure")
    if not (asked.cert_file or asked.key_file or asked.client_ca_file):
        return None
    if not (asked.cert_file and asked.key_file):
        raise MistakeError("give --cert-file and --key-file together")
    try:
        files = _Files(CertificatePair(asked.cert_file, asked.key_file, client_ca=asked.client_ca_file))
    except BrokenPairError as error:
        raise MistakeError(str(error)) from None
    return grpc.dynamic_ssl_server_credentials(files.first, files.renewed, asked.client_ca_file is not None)


class _Files:
    def __init__(self, pair: CertificatePair) -> None:
        """Raises ``BrokenPairError``."""
        self._pair = pair
        self._contents = _checked(pair)
        self._trouble = LoggedProblem(partial(log.warning, "%s; the certificate that was loaded before stays in force"))

    @property
    def first(self) -> grpc.ServerCertificateConfiguration:
        return _configuration(self._contents)

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Asked at each handshake, by a thread of gRPC; None keeps what is in force."""
        try:
            contents = self._pair.contents()
            if contents == self._contents:
                return None
            self._contents = _checked(self._pair)
        except BrokenPairError as error:
            self._trouble.note(str(error))
            return None
        self._trouble.note("")
        return _configuration(self._contents)


def _checked(pair: CertificatePair) -> tuple[bytes, ...]:
    pair.context()
    return pair.contents()


def _configuration(contents: tuple[bytes, ...]) -> grpc.ServerCertificateConfiguration:
    certificate, key, *authorities = contents
    return grpc.ssl_server_certificate_configuration([(key, certificate)], *authorities)
