"""L1: whatever stands in a `continue` token that anybody can seal, the answer is a page or 400."""

import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import orjson
import pytest

from api.http.pagination import CONTINUE_HEADER, VERSION, _digest, derive_token_scope
from api.http.query_params import RefusalsQuery
from api.http.sealing import SEAL, decode_base64, encode_base64
from tests.support.builders.placements import a_check
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt

_V1: Final = "/api/v1"
_POD: Final = _V1 + "/namespaces/api-forged/pods/forged-a"
_PENDING: Final = {"namespace": "api-forged", "limit": "1", "since": "1h"}
LISTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "search": (_V1 + "/schedulerlogs", {"namespace": "api-forged", "limit": "1"}),
    "history": (_POD + "/schedulerlog/history", {"limit": "1"}),
    "nodes of an attempt": (_POD + "/schedulerlog", {"limit": "1"}),
    "findings": (_V1 + "/findings", {"namespace": "api-forged", "limit": "1"}),
    "nodes": (_V1 + "/nodes", {"limit": "1"}),
    "waiting pods": (_V1 + "/pods", {"namespace": "api-forged", "limit": "1", "state": "waiting"}),
    "workloads": (_V1 + "/pending", _PENDING | {"min_wait": "1s"}),
    **{
        f"pods by {order}": (_V1 + "/pending", _PENDING | {"group_by": "pod", "sort": order, "min_wait": "1s"})
        for order in ("wait", "gpu_hours", "devices", "attempts", "name")
    },
}
TIMES: Final = ("now", "now-1d||/d", "2026-11-21||-1d", "x", "", "2h", "2026-99-99T00:00:00Z", "2026-11-21T00:00:00")
EXTREMES: Final = ("0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "2026-11-21T00:00:00+23:59")
NUMBERS: Final = (2**63, -(2**63) - 1, 2**63 - 1, -(2**63), 10**30, 1e308, -1, 0, 1.5, "17", True)
TEXTS: Final = ("", "\x00", "é" * 2000, "*", "now")
SHAPES: Final[tuple[Any, ...]] = (None, [], {}, [[]], [None], {"a": 1})


@pytest.fixture(scope="module")
def filled(filling: Filling) -> Filling:
    minute = timedelta(minutes=1)
    of_pod = [an_attempt("api-forged/forged-a", started_at=NOW - n * minute, reason=f"R{n}") for n in range(3)]
    filling.index(*of_pod, an_attempt("api-forged/forged-b", started_at=NOW - minute))
    filling.index_findings(*(a_finding("api-forged/forged-a", device=f"GPU-forged-{n}") for n in range(2)))
    filling.index_observations(*(a_check(0, node=f"forged-node{n}") for n in range(2)))
    return filling


def parse_position(token: str) -> tuple[str, dict[str, Any]]:
    """Parse the digest of the request, and the position."""
    payload = SEAL.decrypt(decode_base64(token) or b"")
    assert payload
    _, digest, position = orjson.loads(zlib.decompress(payload))
    return digest, position


def seal(digest: str, position: Any) -> str:
    """Seal a position as a reader of this code can: without authentication there is no key."""
    body = f"[{VERSION},{orjson.dumps(digest).decode()},".encode() + _encode(position) + b"]"
    return encode_base64(SEAL.encrypt(zlib.compress(body)))


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits
        return repr(value).replace("'", '"').replace("None", "null").replace("True", "true").encode()


def iterate_wrong_values(value: Any) -> Iterator[Any]:
    """Iterate over values that are wrong in the place of ``value``."""
    yield from SHAPES
    if isinstance(value, list):
        yield [*value, 1]
        yield value[:-1]
        for index, element in enumerate(value):
            for wrong in (*NUMBERS, *TEXTS) if not isinstance(element, str) else (*TEXTS, *NUMBERS):
                yield [*value[:index], wrong, *value[index + 1 :]]
    yield from (*TIMES, *EXTREMES, *NUMBERS)


@pytest.mark.parametrize("name", LISTS)
def test_l1_a_forged_token_is_a_page_or_400(name: str, filled: Filling, api: Served) -> None:
    path, query = LISTS[name]
    digest, position = parse_position(api.get(path, **query).headers[CONTINUE_HEADER])
    assert api.get(path, **query | {"continue": seal(digest, position)}).status_code == 200
    for field, value in position.items():
        for wrong in iterate_wrong_values(value):
            answer = api.get(path, **query | {"continue": seal(digest, position | {field: wrong})})
            assert answer.status_code in (200, 400, 410), (field, wrong, answer.text)
            if field in ("since", "until", "at") and wrong in TIMES:
                assert answer.status_code == 400, (field, wrong)
                assert "continue" in answer.json()["error"]


def test_l1_a_forged_token_of_refusals_too(filled: Filling, api: Served) -> None:
    query = RefusalsQuery(device="GPU-forged-0", since="0001-01-01T00:00:00Z")
    assert api.get(_V1 + "/refusals", device=query.device, since=query.since or "").status_code == 200
    digest = _digest(derive_token_scope("", "refusals", query, cluster="default"))
    position = {"sort": [1, "a"], "since": None, "until": None}
    for field, value in position.items():
        for wrong in iterate_wrong_values(value):
            parameters = {
                "device": query.device,
                "since": query.since or "",
                "continue": seal(digest, {**position, field: wrong}),
            }
            answer = api.get(_V1 + "/refusals", **parameters)
            assert answer.status_code in (200, 400), (field, wrong, answer.text)
