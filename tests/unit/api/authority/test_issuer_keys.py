"""N3: guesses from an address keep no caller out whose token the cluster has signed, or that names our audience."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from api.authority.gate import MAX_REFUSED_TOKENS, CallerCredentials, SourceError
from api.authority.issuer_keys import KEY_SET, IssuerKeys
from api.authority.reviewer import Reviewer
from api.http.sealing import encode_base64
from runtime.kubernetes.errors import KubeApiError
from schemas.json_types import Json
from tests.support.fakes.reviews import FakeReviews

NOW = 1_800_000_000.0
RSA_KEY, EC_KEY = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
Sign = Callable[[bytes], bytes]


def sign_by_rsa(signed: bytes) -> bytes:
    return RSA_KEY.sign(signed, padding.PKCS1v15(), SHA256())


def sign_by_curve(signed: bytes) -> bytes:
    numbers = decode_dss_signature(EC_KEY.sign(signed, ec.ECDSA(SHA256())))
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def write_token(sign: Sign = sign_by_rsa, **claims: object) -> str:
    full_claims = {"aud": ["schedulerlog"], "exp": NOW + 600, "sub": "alice", **claims}
    signed = ".".join(encode_base64(orjson.dumps(part)) for part in ({"alg": "?"}, full_claims))
    return f"{signed}.{encode_base64(sign(signed.encode()))}"


def describe_keys() -> Json:
    of_rsa, of_curve = RSA_KEY.public_key().public_numbers(), EC_KEY.public_key().public_numbers()
    return {
        "keys": [
            {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
            {"kty": "RSA", "n": encode_base64(of_rsa.n.to_bytes(256, "big")), "e": "AQAB"},
            {
                "kty": "EC",
                "crv": "P-256",
                "x": encode_base64(of_curve.x.to_bytes(32, "big")),
                "y": encode_base64(of_curve.y.to_bytes(32, "big")),
            },
        ]
    }


class Published:
    """An API server that publishes ``document``, or refuses."""

    def __init__(self) -> None:
        self.document: Any = describe_keys()

    async def get(self, path: str) -> Any:
        assert path == KEY_SET
        if isinstance(self.document, Exception):
            raise self.document
        return self.document


@pytest.fixture
async def keys() -> IssuerKeys:
    issuer_keys = IssuerKeys("schedulerlog", Published())
    await issuer_keys.read()
    return issuer_keys


@pytest.mark.parametrize("sign", [sign_by_rsa, sign_by_curve])
async def test_a_token_of_the_cluster_is_recognised(keys: IssuerKeys, sign: Sign) -> None:
    assert keys.has_signed(write_token(sign), NOW)
    assert keys.has_signed(write_token(sign, aud="schedulerlog"), NOW)


@pytest.mark.parametrize(
    "token",
    [
        write_token(lambda _: b"x" * 256),
        write_token(lambda _: b"x" * 64),
        write_token(lambda _: b""),
        write_token(aud=["another"]),
        write_token(aud=None),
        write_token(exp=NOW - 1),
        write_token().replace(".", ".e30.", 1),
        "guess",
        "a.b.c",
        "..",
    ],
)
async def test_any_other_token_is_not(keys: IssuerKeys, token: str) -> None:
    assert not keys.has_signed(token, NOW)


async def test_the_signature_has_one_spelling(keys: IssuerKeys) -> None:
    """Base64 of 256 bytes has spare bits in its last letter: each spelling would cost a review of its own."""
    token = write_token()
    spellings = [token[:-1] + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert [text for text in [*spellings, token + "="] if keys.has_signed(text, NOW)] == [token]


@pytest.mark.parametrize("document", [KubeApiError(403, "refused"), {}, {"keys": [{"kty": "RSA"}]}, [], {"keys": 1}])
async def test_without_keys_no_token_counts_as_signed_and_a_failure_keeps_the_previous_ones(document: Any) -> None:
    published = Published()
    keys = IssuerKeys("schedulerlog", published)
    published.document, good = document, published.document
    await keys.read()
    assert not keys.has_signed(write_token(), NOW)
    published.document = good
    await keys.read()
    published.document = document
    await keys.read()
    assert keys.has_signed(write_token(), NOW)


async def send_token(credentials: CallerCredentials, token: str) -> str:
    """Send a token from the address of all; return its owner, or what it got."""
    scope = {"client": ("10.0.0.1", 1), "headers": [(b"authorization", f"Bearer {token}".encode())]}
    try:
        caller = await credentials(scope, 10.0)
    except SourceError:
        return "429"
    return caller.name if caller else "401"


@pytest.mark.parametrize(
    ("write_guess", "is_other_issuer_kept_out"),
    [(lambda number: f"guess-{number}", False), (lambda number: write_token(lambda _: b"x", sub=number), True)],
)
async def test_n3_guesses_keep_no_new_caller_out(
    keys: IssuerKeys, write_guess: Callable[[int], str], is_other_issuer_kept_out: bool
) -> None:
    reviews = FakeReviews()
    signed = [write_token(sub=f"robot-{number}") for number in range(100)]
    reviews.users = {token: {"username": "robot"} for token in signed}
    foreign = write_token(lambda _: b"of another issuer")
    reviews.users[foreign] = {"username": "oidc"}
    reviewer = Reviewer(reviews, "schedulerlog", clock=lambda: 5.0, now=lambda: NOW)
    credentials = CallerCredentials(reviewer, now=lambda: NOW, keys=keys)
    guesses = [await send_token(credentials, write_guess(number)) for number in range(MAX_REFUSED_TOKENS + 20)]
    assert guesses == ["401"] * MAX_REFUSED_TOKENS + ["429"] * 20
    assert {await send_token(credentials, token) for token in signed} == {"robot"}
    assert await send_token(credentials, foreign) == ("429" if is_other_issuer_kept_out else "oidc")


async def test_n3_tokens_that_have_ended_are_no_guesses(keys: IssuerKeys) -> None:
    """They cost no review: a client that continues with its old token keeps no neighbour out."""
    reviews = FakeReviews()
    reviews.users["opaque"] = {"username": "alice"}
    credentials = CallerCredentials(
        Reviewer(reviews, "schedulerlog", clock=lambda: 5.0, now=lambda: NOW), now=lambda: NOW, keys=keys
    )
    ended = [await send_token(credentials, write_token(lambda _: b"x", exp=NOW - n)) for n in range(100)]
    assert ended == ["401"] * 100
    assert await send_token(credentials, "opaque") == "alice"
    assert len(reviews.specs) == 1
