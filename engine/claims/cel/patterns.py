"""Regular expressions, matched by RE2 as Kubernetes' own: in time that grows with the text only."""

from functools import cache, lru_cache
from typing import Any, Final

from engine.claims.cel.values import EvaluationError, UnjudgedError, ValueSizeError

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Private characters around each match; a text that holds one is not searched."""


@cache
def load_library() -> Any:
    """Import Google's CEL library, an extra of the installation; raise UnjudgedError where it is not installed."""
    try:
        from cel_expr_python import cel
    except ImportError:
        raise UnjudgedError(
            "the CEL library is not installed; install schedulerlog[claims] to have device selectors judged"
        ) from None
    return cel


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of the text matches; raise EvaluationError for a malformed pattern."""
    return bool(_run("text.matches(pattern)", text, pattern))


def find(text: str, pattern: str) -> str:
    """Return the first part of the text that matches; "" if none does."""
    parts = find_all(text, pattern, 1)
    return parts[0] if parts else ""


def find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """Return the parts of the text that match, up to a limit of them."""
    if _OPEN in text or _CLOSE in text:
        raise ValueSizeError("a text with characters of Unicode's private area is searched for a regular expression")
    try:
        marked = str(_run(f"regex.replace(text, pattern, '{_OPEN}\\\\0{_CLOSE}')", text, pattern))
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    parts = tuple(part.partition(_CLOSE)[0] for part in marked.split(_OPEN)[1:])
    return parts if limit < 0 else parts[:limit]


def _run(expression: str, text: str, pattern: str) -> Any:
    result = _compile(expression).eval(data={"text": text, "pattern": pattern})
    if result.type() == load_library().Type.ERROR:
        raise EvaluationError(_translate(str(result.value()), pattern))
    return result.value()


@lru_cache(maxsize=4)
def _compile(expression: str) -> Any:
    cel = load_library()
    config = cel.NewEnvConfigFromYaml('{"name": "patterns", "extensions": [{"name": "optional"}, {"name": "regex"}]}')
    variables = {"text": cel.Type.STRING, "pattern": cel.Type.STRING}
    return cel.NewEnv(config=config, variables=variables).compile(expression)


_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
"""RE2's words for an error, and those of Kubernetes' library for the same one."""


def _translate(message: str, pattern: str) -> str:
    """Translate an error of RE2 to the words of Kubernetes' library."""
    cause = message.rpartition("invalid regular expression: ")[2]
    for words, translation in _WORDS.items():
        if cause == words or cause.startswith(f"{words}: "):
            return f"error parsing regexp: {translation}: `{cause[len(words) + 2 :]}`"
    words, _, part = cause.partition(": ")
    return f"error parsing regexp: {words}: `{part or pattern}`"
