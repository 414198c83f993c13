"""Subject of a question as people write it: ``NAME``, ``NAMESPACE/NAME``, ``job/NAME``. Pure."""

from typing import Final, NamedTuple

from engine.cases.workload_words import parse_word

_POD_WORDS: Final = ("pod", "pods", "po")


class Subject(NamedTuple):
    """A pod or a workload."""

    namespace: str
    """Empty if the words name none."""
    word: str
    """Word that names the kind of a workload; empty for a pod."""
    name: str


def parse_subject(text: str) -> Subject:
    """Parse the words of a subject: what stands before the name is a kind if it is one, else a namespace."""
    before, _, name = text.rpartition("/")
    namespace, _, word = before.rpartition("/")
    if word in _POD_WORDS:
        return Subject(namespace, "", name)
    if parse_word(word):
        return Subject(namespace, word, name)
    return Subject(before, "", name)
