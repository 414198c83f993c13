"""Checks the title of a commit: `python .ci/commit_title.py FILE`, as Git's hook `commit-msg` calls it.

A title names the change in the imperative, in at most 72 characters: “Name loop variables after their collection”.
"""

import sys
from pathlib import Path

from language import VERBS, is_third_person, parse_first_word

LONGEST = 72
EXAMPLE = "name the change in the imperative, as in “Name loop variables after their collection”"


def list_title_problems(title: str) -> list[str]:
    """List what is wrong with a title, each with what to do; empty if it is right."""
    problems = []
    word = parse_first_word(title)
    if len(title) > LONGEST:
        problems.append(f"it has {len(title)} characters: keep to {LONGEST}, and explain in the body")
    if is_third_person(word):
        problems.append(f"“{word}” is not in the imperative: {EXAMPLE}")
    elif word not in VERBS:
        problems.append(f"“{word}” is no verb of .ci/language.toml: {EXAMPLE}")
    elif not title[:1].isupper():
        problems.append("it begins with a small letter: write a capital")
    if title.endswith("."):
        problems.append("it ends with a full stop: leave it out")
    return problems


def parse_title(message: str) -> str:
    """Parse the first line of a commit message that is no comment of Git's."""
    return next((line.strip() for line in message.splitlines() if line.strip() and not line.startswith("#")), "")


def main(file: str) -> int:
    title = parse_title(Path(file).read_text("utf-8"))
    problems = list_title_problems(title)
    for problem in problems:
        print(f"commit title “{title}”: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
