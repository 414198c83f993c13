"""Places to continue from: given back whole, for the same question, or refused in words."""

import base64
import zlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.continue_token import BadToken, Position, _checksum, _digest, decode_token, encode_token

ASKED = {"at": "here", "status": "failed"}


class Place(Position):
    after: str
    version: int


@given(st.text(max_size=50), st.integers(0, 2**62))
def test_what_was_sealed_is_unsealed(after: str, version: int) -> None:
    after = after.encode("utf-8", "ignore").decode()
    place = Place(after=after, version=version)
    assert decode_token(encode_token(ASKED, place), ASKED, Place) == place


def test_a_token_needs_no_encoding_in_a_url() -> None:
    token = encode_token(ASKED, Place(after="node1" * 100, version=2**60))
    assert token.replace("-", "").replace("_", "").isalnum()


def test_a_token_belongs_to_its_question() -> None:
    token = encode_token(ASKED, Place(after="node1", version=1))
    refused = decode_token(token, ASKED | {"status": "passed"}, Place)
    assert isinstance(refused, BadToken)
    assert "another request" in refused.cause


@given(st.data())
def test_a_changed_or_shortened_token_is_refused(data: st.DataObject) -> None:
    token = encode_token(ASKED, Place(after="node1", version=1))
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_").filter(lambda each: each != token[place]))
    # The last letter holds fewer bits than it can say.
    if place < len(token) - 1:
        assert isinstance(decode_token(token[:place] + letter + token[place + 1 :], ASKED, Place), BadToken)
    assert isinstance(decode_token(token[:place], ASKED, Place), BadToken)


@pytest.mark.parametrize("token", ["", "a", "ab", "abc=", "???", "é", "null", "A" * 20_000, " ", "\x00"])
def test_what_is_no_token_is_refused(token: str) -> None:
    assert isinstance(decode_token(token, ASKED, Place), BadToken)


def forged(said: bytes) -> str:
    """With the right checksum, as somebody who reads this code could make one."""
    return base64.urlsafe_b64encode(_checksum(said) + said).decode().rstrip("=")


@pytest.mark.parametrize(
    "said",
    [
        b"no zlib",
        zlib.compress(b"no json"),
        zlib.compress(b"[1]"),
        zlib.compress(b"17"),
        zlib.compress(b"[2,1,{}]"),
        zlib.compress(orjson.dumps([1, _digest(ASKED), {"after": 1}])),
        zlib.compress(orjson.dumps([1, _digest(ASKED), {"after": "a", "version": 1, "more": 1}])),
        zlib.compress(b" " * 10_000_000),
    ],
)
def test_a_forged_token_is_refused_too(said: bytes) -> None:
    assert isinstance(decode_token(forged(said), ASKED, Place), BadToken)
