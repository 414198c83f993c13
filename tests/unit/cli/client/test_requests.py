import json
import re
from urllib.parse import urlencode

import pytest

from api.http.aggregated.translation import translate_path
from api.http.openapi_document import FILE
from cli.client.requests import ROOT, build_node_path, build_pod_path, to_aggregated, with_query

PATHS = sorted(
    path.removeprefix(ROOT)
    for path in json.loads(FILE.read_bytes())["paths"]
    if path.startswith(ROOT) and "{cluster}" not in path and path != ROOT + "/clusters" and "cluster-file" not in path
)


@pytest.mark.parametrize("template", PATHS)
def test_the_aggregated_api_answers_every_path_as_the_api_does(template: str) -> None:
    path = re.sub(r"\{(\w+)\}", r"a-\1", template)
    path_there, query = to_aggregated(path, {"limit": "2"})
    translation = translate_path(path_there)
    assert translation
    assert (translation.path, translation.namespace, query) == (ROOT + path, "", {"limit": "2"})


def test_a_list_of_one_namespace_is_asked_for_in_that_namespace() -> None:
    path_there, query = to_aggregated("/pending", {"namespace": "llm", "since": "2h"})
    assert (path_there, query) == ("/apis/schedulerlog.io/v1alpha1/namespaces/llm/pending", {"since": "2h"})
    translation = translate_path(path_there)
    assert translation
    assert (translation.path, translation.namespace) == (ROOT + "/pending", "llm")


@pytest.mark.parametrize("name", ["../../secrets", "a/b", "a?limit=1", "a#b", "a b", "\x1b[2J", "名"])
def test_a_name_is_one_part_of_the_path(name: str) -> None:
    assert build_pod_path(name, name, "diagnosis").count("/") == 5
    for path in (build_pod_path(name, name, "diagnosis"), build_node_path(name)):
        assert re.fullmatch(r"[\w%./-]+", path, re.ASCII)
        assert "?" not in path


def test_parameters_without_a_value_are_left_out() -> None:
    assert with_query("/nodes", {"at": "", "limit": "1", "q": "a&b=c"}) == "/nodes?" + urlencode(
        {"limit": "1", "q": "a&b=c"}
    )
    assert with_query("/nodes", {"at": ""}) == "/nodes"
