"""Pages that have nothing to show, or not yet: not allowed, away, unknown, empty and loading, in a real Chromium."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from page.views.translations import load_error_meanings
from tests.support.harness.api_app import Caller, answer_nothing, refuse
from tests.support.harness.golden_index import answer_search, read_attempt
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.page_server import page_server
from tests.support.visitor import Visitor

POD: Final = "/ui/pods/llm/deepseek-5996b8569d-kgwgx"
OF_COLOURS: Final = ["color-contrast", "scrollable-region-focusable", "target-size"]
MEANINGS: Final = tuple(load_error_meanings().values())
_EXCESS: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class State(NamedTuple):
    server: str
    path: str
    status: int
    element: str
    """The element of the state."""


STATES: Final = {
    "not allowed": State("guarded", "/ui/pods/other/deepseek-a", 403, ".state.not_allowed"),
    "list that is not allowed": State("guarded", "/ui/pending", 403, ".state.not_allowed"),
    "changes that are not allowed": State("guarded", "/ui/pending/changes", 403, ".state.not_allowed"),
    "index away": State("away", "/ui/findings", 503, ".state.unavailable"),
    "unknown": State("nothing", "/ui/pods/llm/never", 404, ".state[role=alert]"),
    "empty": State("nothing", "/ui/pending", 200, ".state.empty"),
    "loading": State("golden", POD, 200, "#changes [data-into]"),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    guarded, golden = Guarded(), Caller(answer_search)
    guarded.begin()
    guarded.reviews.build_header("alice", READS_LLM)
    golden.remember(read_attempt())
    callers = {"guarded": guarded, "away": Caller(refuse), "nothing": Caller(answer_nothing), "golden": golden}
    with ExitStack() as stack:
        yield {name: stack.enter_context(page_server(caller)) for name, caller in callers.items()}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", STATES)
def test_the_state_is_shown_in_both_languages_at_both_widths_light_and_dark(
    browser: Browser, servers: dict[str, str], name: str, language: str
) -> None:
    state = STATES[name]
    headers = {"Authorization": "Bearer token-of-alice"} if state.server == "guarded" else {}
    with browser.new_context(locale="en", extra_http_headers=headers, bypass_csp=True) as context:
        visitor = Visitor(context.new_page(), servers[state.server])
        visitor.watch()
        if name == "loading":
            # Never answered: what is shown until then stays.
            context.route("**/changes*", lambda _: None)
        answer = visitor.page.goto(f"{visitor.origin}{state.path}?lang={language}")
        assert answer
        assert answer.status == state.status
        assert visitor.page.locator(state.element).first.inner_text().strip()
        if language == "zh" and state.status >= 400:
            assert any(meaning["zh"] in visitor.page.locator(state.element).first.inner_text() for meaning in MEANINGS)
        for width, colours, rules in ((1280, "light", None), (390, "dark", OF_COLOURS)):
            visitor.page.set_viewport_size({"width": width, "height": 844})
            visitor.page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
            assert visitor.page.evaluate(_EXCESS) <= 0, width
            assert _find_violations(visitor, rules) == []
        # Chromium itself logs that the page's own status is one of a failure.
        assert [message for message in visitor.wrong if "Failed to load resource" not in message] == []
        assert visitor.elsewhere == []


def _find_violations(visitor: Visitor, rules: list[str] | None) -> list[tuple[str, str]]:
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    violations = Axe().run(visitor.page, options=options).response["violations"]
    return [(violation["id"], violation["nodes"][0]["html"]) for violation in violations]
