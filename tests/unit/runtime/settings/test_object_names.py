"""Names that an API server accepts."""

import pytest

from runtime.settings.names import find_label_problem, find_subdomain_problem


@pytest.mark.parametrize("name", ["a", "0", "gpu-pod", "a--b", "a" * 63, "0-9"])
def test_good_labels(name: str) -> None:
    assert find_label_problem(name) is None


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("", "empty"),
        ("a" * 64, "64 characters"),
        ("A", "'A'"),
        ("a_b", "'_'"),
        ("a.b", "'.'"),
        ("-a", "begin and end"),
        ("a-", "begin and end"),
        ("a\n", r"'\n'"),
        ("a\x00b", r"'\x00'"),
        ("ä", r"'\xe4'"),
        ("١", r"'\u0661'"),
        ("a/b", "'/'"),
        ("..", "'.'"),
    ],
)
def test_a_wrong_label_names_its_mistake(name: str, cause: str) -> None:
    assert cause in (find_label_problem(name) or "")


@pytest.mark.parametrize("name", ["a.b", "node1.cluster.local", "a" * 253, "1.2.3"])
def test_good_subdomains(name: str) -> None:
    assert find_subdomain_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", ".a", "a.", "a.-b", "a" * 254, "a/b", "a b", "%61", "a\\b"])
def test_wrong_subdomains(name: str) -> None:
    assert find_subdomain_problem(name)
