"""One real control plane for the whole run, one namespace for every test."""

import itertools
import os
import uuid
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from rich.console import Console

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane import control_plane as running_control_plane
from dev.embedded.control_plane.build import HELM, ensure_installed
from dev.embedded.control_plane.cluster import CORE
from dev.embedded.control_plane.steps import create_steps
from tests.support.control_plane.chart import Helm
from tests.support.control_plane.objects import created_namespace

FIRST_BUILD_SECONDS = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first tests that ask for the control plane and Helm time for their builds, minutes on a new machine."""
    for name in ("control_plane", "helm"):
        asking = (item for item in items if name in getattr(item, "fixturenames", ()))
        for first in itertools.islice(asking, 1):
            first.add_marker(pytest.mark.timeout(FIRST_BUILD_SECONDS))


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """etcd, kube-apiserver, controllers and kwok; a test that needs kube-scheduler starts it with its configuration.

    Nodes belong to the cluster: use names that nobody else uses, and delete them. kwok makes them ready and their pods
    run. kube-scheduler is one for all: ``control_plane.start_scheduler(configuration)`` replaces the one before.
    """
    # Programs in Go look for garbage when their memory has grown fivefold rather than doubled: a quarter less CPU of
    # the API server and of a render by kubectl, for up to 0.4 GB more memory of the API server.
    os.environ.setdefault("GOGC", "400")
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        ensure_installed(create_steps(Console(stderr=True)))
    with running_control_plane(names=(*CORE, "kwok")) as running:
        yield running


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own where pods can be created; it goes with everything in it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    with created_namespace(control_plane, name):
        yield name


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Helm:
    """Helm, built from its Go module at the first use."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        program = ensure_installed(create_steps(Console(stderr=True)), program=HELM)
    return Helm(program, tmp_path_factory.mktemp("helm"))
