"""The lints of .ci refuse what breaks a rule, let pass what does not, and report it in one form."""

import subprocess
import sys
from pathlib import Path

import pytest

from bindings import check_bindings, check_classes
from commit_title import list_title_problems
from docstrings import check_docstrings
from sources import Violation, run
from words import check_classes as check_class_names
from words import check_words

ROOT = Path(__file__).parents[2]


def list_rules(violations: list[Violation]) -> list[str]:
    return [violation.rule for violation in violations]


@pytest.mark.parametrize(
    ("docstring", "rule"),
    [
        ("Count the slots of a node.", None),
        ("Tell whether the pod is bound.", None),
        ("Return whether the pod is bound?", None),
        ("What the node offers.", "begins as a clause"),
        ("None of the pods.", "begins as a clause"),
        ("How many slots the node has.", "begins as a clause"),
        ("The same for nodes.", "refers to another sentence"),
        ("In the same way, for nodes.", "refers to another sentence"),
        ("Returns the nodes.", "begins in the third person"),
        ("Copies the nodes.", "begins in the third person"),
        ("Is the pod bound?", "is a question"),
        ("The slots of a node.", "begins with no verb"),
        ("``slots`` are counted.", "begins with no verb"),
    ],
)
def test_the_docstring_of_a_function_begins_with_an_imperative(docstring: str, rule: str | None) -> None:
    text = (
        f'def count(slots: int) -> None:\n    """{docstring}\n\n    The same in the body is not looked at.\n    """\n'
    )
    expected = [] if rule is None else [f"docstring of a function {rule}"]
    assert list_rules(check_docstrings("fit/slots.py", text)) == expected


@pytest.mark.parametrize(
    ("file", "head"),
    [
        ("fit/slots.py", "class Node:\n @property\n def {}"),
        ("fit/slots.py", "class Node:\n @model_validator(mode='after')\n def {}"),
        ("fit/slots.py", "@contextmanager\ndef {}"),
        ("tests/unit/test_slots.py", "@pytest.fixture\ndef {}"),
        ("tests/unit/test_slots.py", "def a_{}"),
        ("tests/unit/test_slots.py", "def test_{}"),
    ],
)
def test_a_function_that_is_a_noun_has_a_noun_phrase_or_an_imperative(file: str, head: str) -> None:
    body = '(self):\n  """{}"""'
    for sentence, expected in (
        ("The slots of a node.", []),
        ("Count the slots of a node.", []),
        ("What a node has.", ["docstring of a function begins as a clause"]),
    ):
        assert list_rules(check_docstrings(file, head.format("slots") + body.format(sentence))) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"""{}"""', "docstring of a module"),
        ('class Node:\n    """{}"""', "docstring of a class"),
        ('class Node:\n    slots: int\n    """{}"""', "docstring of a field"),
        ('LIMIT = 5\n"""{}"""', "docstring of a field"),
        ('Field(default=1, description="{}" + MORE)', "public text"),
        ('typer.Option(help=f"{} {{LIMIT}}")', "public text"),
        ('Counter("slots_total", "{}")', "public text"),
    ],
)
def test_every_other_text_is_a_noun_phrase(text: str, kind: str) -> None:
    assert check_docstrings("fit/slots.py", text.format("Slots of the node.")) == []
    assert check_docstrings("fit/slots.py", text.format("At most 5 slots.")) == []
    refused = check_docstrings("fit/slots.py", text.format("Those of the node."))
    assert list_rules(refused) == [f"{kind} begins as a clause"]
    refused = check_docstrings("fit/slots.py", text.format("The same of the node."))
    assert list_rules(refused) == [f"{kind} refers to another sentence"]


@pytest.mark.parametrize(
    "text",
    [
        "{} = read()",
        "_{} = read()",
        "{}2 = read()",
        "for {} in nodes:\n    send(nodes)",
        "nodes = [f({}) for {} in rows]",
        "with open(path) as {}:\n    send(path)",
        "try:\n    send()\nexcept OSError as {}:\n    raise",
        "def send({}): ...",
        "def send(*, {}=1): ...",
        "class Node:\n    {}: int",
        "class Node:\n    def send(self):\n        self.{} = 1",
        "match node:\n    case [{}, *_]: send()",
        "match node:\n    case {{'uid': {}}}: send()",
        "if {} := read():\n    send()",
        "import nodes as {}",
        "send(lambda {}: 1)",
    ],
)
def test_names_that_say_nothing_are_refused_wherever_they_are_bound(text: str) -> None:
    assert set(list_rules(check_bindings("fit/slots.py", text.format("found", "found")))) == {
        "a name that says nothing"
    }
    assert check_bindings("fit/slots.py", text.format("node", "node")) == []


def test_names_that_are_only_read_are_those_of_others() -> None:
    assert check_bindings("fit/slots.py", "send(response.found, node.place, rest=1)") == []


@pytest.mark.parametrize(
    "text",
    [
        "def count_slots(): ...",
        "def _count_slots(): ...",
        "async def send(): ...",
        "def to_answer(): ...",
        "def from_answer(): ...",
        "def with_slots(): ...",
        "def on_close(): ...",
        "def is_bound(): ...",
        "def can_bind(): ...",
        "def may_bind(): ...",
        "def accepts(kind) -> bool: ...",
        "def copies(kind) -> TypeGuard[str]: ...",
        "class Node:\n    def __len__(self): ...",
        "class Node:\n    @property\n    def slots(self): ...",
        "class Node:\n    @slots.setter\n    def slots(self, value): ...",
        "class Node:\n    @cached_property\n    def slots(self): ...",
        "class Node:\n    @field_validator('slots')\n    def positive(cls, value): ...",
        "@contextmanager\ndef locked(): ...",
        "@app.command('hami-log')\ndef hami_log(): ...",
        "async def lifespan(app): ...",
        "class Handler:\n    def formatMessage(self, record): ...",
        "class Visitor:\n    def visit_Name(self, node): ...",
    ],
)
def test_functions_begin_with_a_verb_or_are_nouns_where_they_are_used(text: str) -> None:
    assert check_bindings("fit/slots.py", text) == []


@pytest.mark.parametrize(
    "name", ["slots", "state_of_node", "of_node", "latest", "as_json", "accepts", "sent", "_written"]
)
def test_functions_that_begin_with_another_word_are_refused(name: str) -> None:
    for text in (f"def {name}() -> str: ...", f"class Node:\n    async def {name}(self): ..."):
        assert list_rules(check_bindings("fit/slots.py", text)) == ["a function begins with a verb"]


def test_builders_and_fixtures_of_tests_are_nouns() -> None:
    for text in ("def a_node(): ...", "def an_attempt(): ...", "@pytest.fixture\ndef node(): ..."):
        assert check_bindings("tests/support/builders/nodes.py", text) == []
    assert list_rules(check_bindings("fit/nodes.py", "def a_node(): ...")) == ["a function begins with a verb"]


@pytest.mark.parametrize(
    "change",
    [
        "self.count = 1",
        "self.count += 1",
        "nodes['n'] = 1",
        "del nodes['n']",
        "self.nodes.labels.update(nodes)",
        "SEEN.add(nodes)",
        "global COUNT",
        "if nodes.pop('n'): pass",
    ],
)
def test_questions_change_nothing(change: str) -> None:
    text = "class Node:\n    def {}(self, nodes) -> bool:\n        {}\n        return True"
    assert list_rules(check_bindings("fit/nodes.py", text.format("is_seen", change))) == ["a question changes nothing"]
    assert list_rules(check_bindings("fit/nodes.py", text.format("accepts", change))) == ["a question changes nothing"]
    assert check_bindings("fit/nodes.py", text.format("note_seen", change)) == []


@pytest.mark.parametrize(
    "work",
    ["rows = []\n    rows.append(nodes)", "rows = {}\n    rows['n'] = 1", "count = nodes.get(1)", "nodes.index('n')"],
)
def test_questions_may_change_what_is_local(work: str) -> None:
    assert check_bindings("fit/nodes.py", f"def is_seen(nodes):\n    {work}") == []


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (["JudgedNodes", "NodesJudged"], ["NodesJudged"]),
        (["JudgedNode", "NodesJudged"], ["NodesJudged"]),
        (["PodQueryPolicy", "QueryPod", "PolicyPodQueries"], ["PolicyPodQueries"]),
        (["Node", "Nodes", "NodeRow", "NodeRows", "NodeRow"], []),
        (["JudgedNodes", "DevicesJudged"], []),
    ],
)
def test_classes_do_not_permute_words(names: list[str], refused: list[str]) -> None:
    violations = check_classes(("fit/nodes.py", line, name) for line, name in enumerate(names))
    assert [violation.name for violation in violations] == refused


def test_words_of_the_list_are_refused_in_names_and_sentences() -> None:
    text = '"""What `told` quotes, nobody said."""\nuntold = 1\n'
    violations = [(violation.line, violation.name) for violation in check_words("fit/nodes.py", text)]
    assert violations == [(2, "untold"), (1, "“said”")]
    assert [violation.name for violation in check_words("docs/a.md", "It is told.\n\n```\nsaid\n```\n")] == ["“told”"]
    assert check_words("fit/nodes.py", '"""Nodes of a cluster."""\nnodes = 1\n') == []


def test_a_class_name_stands_for_one_thing() -> None:
    classes = [("a.py", 1, "Node"), ("b.py", 2, "Node"), ("b.py", 3, "_Row"), ("c.py", 4, "_Row"), ("c.py", 5, "Pod")]
    assert [(violation.file, violation.line) for violation in check_class_names(classes)] == [("b.py", 2)]


VIOLATIONS = [
    Violation("fit/a.py", 3, "found", "a name that says nothing", "write hits"),
    Violation("api/b.py", 1, "own", "a name that says nothing", "write owner"),
    Violation("api/b.py", 2, "slots()", "a function begins with a verb", "write count_slots"),
]


@pytest.mark.parametrize(
    ("arguments", "violations", "code", "output"),
    [
        ([], [], 0, []),
        (["--count"], [], 0, ["0 in all"]),
        (
            ["fit", "api"],
            VIOLATIONS,
            1,
            [
                "api/b.py:1: own: a name that says nothing; write owner",
                "api/b.py:2: slots(): a function begins with a verb; write count_slots",
                "fit/a.py:3: found: a name that says nothing; write hits",
                "violations: 3; the rules: .ci/lint.py",
            ],
        ),
        (
            ["--count"],
            VIOLATIONS,
            1,
            [
                "  1. a name that says nothing: 2",
                "  2. a function begins with a verb: 1",
                "                 all    1.    2.",
                "api                2     1     1",
                "fit                1     1     0",
                "3 in all",
            ],
        ),
    ],
)
def test_a_lint_prints_violations_or_their_counts_and_fails_if_there_are_any(
    arguments: list[str],
    violations: list[Violation],
    code: int,
    output: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [".ci/lint.py", *arguments])
    calls: list[list[str]] = []

    def find(paths: list[str]) -> list[Violation]:
        calls.append(paths)
        return [*violations, *violations]

    assert run("Check names.", find) == code
    assert capsys.readouterr().out.splitlines() == output
    assert calls == [[argument for argument in arguments if argument != "--count"]]


@pytest.mark.parametrize("lint", ["words", "docstrings", "bindings"])
def test_the_lints_read_tracked_files_and_pass_themselves(lint: str) -> None:
    result = subprocess.run(
        [sys.executable, f"../.ci/{lint}.py", "../.ci"], cwd=ROOT / "docs", capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("title", "problem"),
    [
        ("Name loop variables after their collection", None),
        ("Revert “Name loop variables after their collection”", None),
        ("Loop variables are named after their collection", "no verb"),
        ("Names loop variables after their collection", "not in the imperative"),
        ("name loop variables", "capital"),
        ("Name loop variables.", "full stop"),
        ("Name loop variables " + "after their collection " * 3, "89 characters"),
        ("", "no verb"),
    ],
)
def test_a_commit_title_names_a_change(title: str, problem: str | None) -> None:
    problems = list_title_problems(title)
    assert len(problems) == (problem is not None)
    assert problem is None or problem in problems[0]


def test_the_commit_hook_reads_the_first_line_that_is_no_comment(tmp_path: Path) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    for text, code in (("# On branch\n\nAdd lints\n\nThey read.\n", 0), ("Lints of names\n", 1)):
        message.write_text(text)
        command = [sys.executable, ".ci/commit_title.py", str(message)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.returncode == code
        assert ("Lints of names" in result.stderr) == bool(code)
