"""The application with authentication, and reviews that a test grants. What a real API server decides is in
tests/integration/kubernetes/test_authority.py."""

import pytest

from tests.support.harness.api_app import Caller
from tests.support.harness.guarded_api import Guarded


@pytest.fixture(scope="module")
def application() -> Guarded:
    return Guarded()


@pytest.fixture
def api(application: Guarded) -> Guarded:
    application.begin()
    return application


@pytest.fixture(scope="module")
def without_authentication() -> Caller:
    return Caller()
