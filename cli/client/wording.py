"""The API's words about a wrong or late answer, in those of a terminal: options and commands, not parameters and paths.

The API speaks to programs. A person at a terminal has the same next step under another name.
"""

import re
from typing import Final

_OPTIONS: Final = {
    "add_node": "--add-node", "group_by": "--by", "min_wait": "--min-wait", "name": "the name",
    "namespace": "-n", "node": "the node's name", "cluster": "--context", "q": "--search",
    "word": "the kind before the name", "attempt_id": "--attempt",
}  # fmt: skip
"""Options whose names are not those of their parameters."""
_REPLACED: Final = (
    (r"GET /docs lists every path with its parameters\.", "The command's --help lists what it takes."),
    (r"GET /docs lists every path\.", "`schedulerlog --help` lists the commands."),
    (r"GET /api/v1/nodes lists the nodes\.", "`schedulerlog nodes` lists the nodes."),
    (r"GET /api/v1/clusters lists (all|clusters)\.", "`schedulerlog doctor` names the cluster of the API."),
    (r" \(GET /api/v1/clusters\)", ""),
    (r"GET /readyz of each shows it\.", "`schedulerlog doctor` shows it."),
    (r"GET /readyz names late parts, ", "`schedulerlog doctor` names late parts; "),
    (r"GET /readyz shows when (it does|OpenSearch is back)\.", "`schedulerlog doctor` shows when."),
    (r"\(namespace=, in a terminal -n\)", "(-n)"),
    (r"Ask for the first page, without continue\.", "Give the command again."),
    (r"Search again, without continue\.", "Give the command again."),
    (r"Leave the parameter out", "Leave it out"),
    (r"Input should be", "should be"),
    (r"; leave out `at` for the current state", "; leave out --at for the current state"),
)
_PARAMETER: Final = re.compile(r"\bparameter '?([a-z_]+)'?")
_ALLOWED: Final = re.compile(r"( is unknown here); known are: .*")


def to_terminal_words(text: str) -> str:
    """Convert a cause or a next step of the API."""
    for pattern, words in _REPLACED:
        text = re.sub(pattern, words, text)
    return _ALLOWED.sub(r"\1", _PARAMETER.sub(lambda match: name_option(match[1]), text))


def name_option(parameter: str) -> str:
    """Name the option of a parameter, or what stands in its place on a command line."""
    return _OPTIONS.get(parameter) or f"--{parameter.replace('_', '-')}"
