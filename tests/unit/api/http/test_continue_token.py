"""Continue tokens: decoded to the same position for the same request, or refused with a cause."""

import contextlib
import zlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.pagination import BadToken, Position, _digest, decode_token, encode_token
from api.http.sealing import SEAL, decode_base64, encode_base64

SCOPE = {"at": "here", "status": "failed"}


class NodePlace(Position):
    after: str
    version: int


@given(st.text(max_size=50), st.integers(0, 2**62))
def test_a_decoded_token_is_the_position_that_was_encoded(after: str, version: int) -> None:
    after = after.encode("utf-8", "ignore").decode()
    position = NodePlace(after=after, version=version)
    assert decode_token(encode_token(SCOPE, position), SCOPE, NodePlace) == position


def test_a_token_needs_no_encoding_in_a_url() -> None:
    token = encode_token(SCOPE, NodePlace(after="node1" * 100, version=2**60))
    assert token.replace("-", "").replace("_", "").isalnum()


def test_a_token_belongs_to_its_request() -> None:
    token = encode_token(SCOPE, NodePlace(after="node1", version=1))
    refused = decode_token(token, SCOPE | {"status": "passed"}, NodePlace)
    assert isinstance(refused, BadToken)
    assert "another request" in refused.cause


@given(st.data())
def test_a_changed_or_shortened_token_is_refused(data: st.DataObject) -> None:
    token = encode_token(SCOPE, NodePlace(after="node1", version=1))
    index = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_").filter(lambda character: character != token[index]))
    # The last letter of base64 encodes fewer bits than it has, so another letter may mean the same.
    if index < len(token) - 1:
        assert isinstance(decode_token(token[:index] + letter + token[index + 1 :], SCOPE, NodePlace), BadToken)
    assert isinstance(decode_token(token[:index], SCOPE, NodePlace), BadToken)


@pytest.mark.parametrize("token", ["", "a", "ab", "abc=", "???", "é", "null", "A" * 20_000, " ", "\x00"])
def test_a_text_that_is_not_a_token_is_refused(token: str) -> None:
    assert isinstance(decode_token(token, SCOPE, NodePlace), BadToken)


def forge(payload: bytes) -> str:
    """Forge a token with no key, as a reader of this code could make it."""
    return encode_base64(SEAL.encrypt(payload))


@pytest.mark.parametrize(
    "payload",
    [
        b"no zlib",
        zlib.compress(b"no json"),
        zlib.compress(b"[1]"),
        zlib.compress(b"17"),
        zlib.compress(b"[4,1,{}]"),
        zlib.compress(orjson.dumps([4, _digest(SCOPE), {"after": 1}])),
        zlib.compress(orjson.dumps([4, _digest(SCOPE), {"after": "a", "version": 1, "more": 1}])),
        zlib.compress(b" " * 10_000_000),
    ],
)
def test_a_forged_token_is_refused_too(payload: bytes) -> None:
    assert isinstance(decode_token(forge(payload), SCOPE, NodePlace), BadToken)


def test_with_a_key_only_its_holders_make_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 38 and 40: everything in this one is right but its seal."""
    token = encode_token(SCOPE, NodePlace(after="node1", version=1))
    monkeypatch.setattr(SEAL, "read_key", lambda: b"the servers' key")
    assert isinstance(decode_token(token, SCOPE, NodePlace), BadToken)
    sealed = encode_token(SCOPE, NodePlace(after="node1", version=1))
    assert decode_token(sealed, SCOPE, NodePlace) == NodePlace(after="node1", version=1)
    monkeypatch.setattr(SEAL, "read_key", lambda: b"another key")
    assert isinstance(decode_token(sealed, SCOPE, NodePlace), BadToken)


def test_n4_a_token_can_not_be_read_or_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SEAL, "read_key", lambda: b"the servers' key")
    tokens = [encode_token(SCOPE, NodePlace(after="secret-model", version=1)) for _ in range(2)]
    assert tokens[0] != tokens[1]
    for token in tokens:
        sealed = decode_base64(token) or b""
        for start in range(len(sealed)):
            with contextlib.suppress(zlib.error):
                assert b"secret" not in zlib.decompressobj().decompress(sealed[start:], 1000)
