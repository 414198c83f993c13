"""Our webhook, and one that denies, asked by the real API server."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.certificates import Authority
from tests.support.control_plane.extender_process import Extender
from tests.support.control_plane.objects import create
from tests.support.waiting import eventually


@contextmanager
def registered_webhook(cluster: ControlPlane, extender: Extender, namespace: str) -> Iterator[None]:
    """The API server asks about every pod of the namespace, soon; what fails there is refused, not ignored."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    called = {
        "name": "vgpu.hami.io",
        "clientConfig": {
            "url": f"{extender.url}/webhook",
            "caBundle": base64.b64encode(extender.ca.read_bytes()).decode(),
        },
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    with cluster.open_client() as client:
        create(client, path, {"metadata": {"name": namespace}, "webhooks": [called]})
        try:
            yield
        finally:
            client.delete(f"{path}/{namespace}")


@contextmanager
def webhook_of(cluster: ControlPlane, extender: Extender, namespace: str, probe: Json) -> Iterator[None]:
    """The API server asks about every pod of the namespace, from now on.

    probe: a pod that names no scheduler, and gets the extender's.
    """
    with registered_webhook(cluster, extender, namespace), cluster.open_client() as client:
        # The API server learns of it with a delay; until then pods pass unchanged.
        pods = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        eventually(
            lambda: create(client, pods, probe)["spec"]["schedulerName"] == extender.name, extender.log.read_text
        )
        yield


@contextmanager
def denying_webhook(
    cluster: ControlPlane, folder: Path, namespace: str, labels: Mapping[str, str], words: str
) -> Iterator[None]:
    """A validating webhook denies every pod of the namespace with these labels, from now on."""
    authority = Authority(folder)
    pair = authority.issue("rules")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    with ThreadingHTTPServer(("127.0.0.1", 0), _build_denial(words)) as server, cluster.open_client() as client:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bundle = base64.b64encode(authority.ca_file.read_bytes()).decode()
        called = {
            "name": "rules.example.org", "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None",
            "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": dict(labels)}, "admissionReviewVersions": ["v1"],
        }  # fmt: skip
        create(client, path, {"metadata": {"name": namespace}, "webhooks": [called]})
        try:
            pod = {"metadata": {"name": "probe", "labels": dict(labels)}}
            probe = {**pod, "spec": {"containers": [{"name": "main", "image": "none"}]}}
            pods = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
            eventually(lambda: words in client.post(pods, json=probe).text, "the API server does not ask the webhook")
            yield
        finally:
            client.delete(f"{path}/{namespace}")
            server.shutdown()


def _build_denial(words: str) -> type[BaseHTTPRequestHandler]:
    class Denial(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": words}}
            body = json.dumps({**review, "request": None, "response": answer}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    return Denial
