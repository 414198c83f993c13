"""Credentials of the sniffer's gRPC service: accepted clients, and a certificate that may be replaced at run time."""

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


def create_credentials(address: HostPort, options: GrpcOptions) -> grpc.ServerCredentials | None:
    """Create the credentials; None for a plain service.

    Raises ``MistakeError`` for unusable files, and for an address beyond loopback without client certificates.
    """
    if not options.insecure and not address.is_loopback and not options.client_ca_file:
        raise MistakeError(f"who reaches {address} could report whatever they like about pods: {_FILES}, or --insecure")
    if not (options.cert_file or options.key_file or options.client_ca_file):
        return None
    if not (options.cert_file and options.key_file):
        raise MistakeError("give --cert-file and --key-file together")
    try:
        files = _Files(CertificatePair(options.cert_file, options.key_file, client_ca=options.client_ca_file))
    except BrokenPairError as error:
        raise MistakeError(str(error)) from None
    return grpc.dynamic_ssl_server_credentials(files.first, files.renew, options.client_ca_file is not None)


class _Files:
    def __init__(self, pair: CertificatePair) -> None:
        """Read the files. Raises ``BrokenPairError``."""
        self._pair = pair
        self._contents = _check_pair(pair)
        self._trouble = LoggedProblem(partial(log.warning, "%s; the certificate that was loaded before stays in force"))

    @property
    def first(self) -> grpc.ServerCertificateConfiguration:
        return _build_configuration(self._contents)

    def renew(self) -> grpc.ServerCertificateConfiguration | None:
        """Renew the configuration if the files changed; None keeps the old one. gRPC calls it at each handshake."""
        try:
            contents = self._pair.read_contents()
            if contents == self._contents:
                return None
            self._contents = _check_pair(self._pair)
        except BrokenPairError as error:
            self._trouble.note(str(error))
            return None
        self._trouble.note("")
        return _build_configuration(self._contents)


def _check_pair(pair: CertificatePair) -> tuple[bytes, ...]:
    pair.build_context()
    return pair.read_contents()


def _build_configuration(contents: tuple[bytes, ...]) -> grpc.ServerCertificateConfiguration:
    certificate, key, *authorities = contents
    return grpc.ssl_server_certificate_configuration([(key, certificate)], *authorities)
