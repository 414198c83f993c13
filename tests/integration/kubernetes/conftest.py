"""One real control plane for the whole run, one namespace for every test."""

import uuid
from collections.abc import Iterator

import pytest

from embedded.control_plane import ControlPlane
from embedded.control_plane import control_plane as running_control_plane
from embedded.control_plane.cluster import CORE
from tests.integration.kubernetes.objects import created_namespace


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """etcd, kube-apiserver, controllers and kwok; a test that needs kube-scheduler starts it with its configuration.

    Nodes belong to the cluster: use names that nobody else uses, and delete them. kwok makes them ready and their pods
    run. kube-scheduler is one for all: ``control_plane.start_scheduler(configuration)`` replaces the one before.
    """
    with running_control_plane(names=(*CORE, "kwok")) as running:
        yield running


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own where pods can be created; it goes with everything in it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    with created_namespace(control_plane, name):
        yield name
