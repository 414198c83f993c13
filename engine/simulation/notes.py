"""Notes of an answer: facts that are no obstacle, and that the reader has to know."""

from typing import NamedTuple

from schemas.answers.diagnosis import InBothLanguages


class Note(NamedTuple):
    """A note. code: for programs."""

    code: str
    text: InBothLanguages
