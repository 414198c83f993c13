"""Our webhook, asked by the real API server."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
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
