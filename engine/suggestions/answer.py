"""The answer that says what would have to change, from the changes that the fit proved. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from engine.suggestions.ask import Constraint
from engine.suggestions.suggestion import Edit, Suggestion
from engine.suggestions.texts import NOT_KNOWN, sentence
from engine.summaries.named_pods import HIDDEN_POD
from schemas.answers.suggestions import ContainerDevices, SuggestedChange, SuggestedEdit, Suggestions
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

_OTHERS_ZH: Final = "其他命名空间的 Pod"
_NOT_NAMED: Final = "a pod that it does not name"
_NOT_NAMED_ZH: Final = "未注明的 Pod"


class Found(NamedTuple):
    items: list[Suggestion]
    excluded_by: list[Constraint]
    fits: bool


def suggestions_of(
    summary: AttemptSummarized,
    attempt: str,
    as_of: datetime,
    found: Found,
    names: Mapping[str, str],
    unknown: Sequence[str],
) -> Suggestions:
    """The answer. attempt: its path; names: by uid, pods as the caller may see them."""
    return Suggestions(
        cluster=summary.cluster,
        namespace=summary.pod.namespace,
        name=summary.pod.name,
        attempt=attempt,
        as_of=format_rfc3339(as_of),
        state="placed" if summary.status == "succeeded" else "fits" if found.fits else "refused",
        items=[_item(item, summary, names) for item in found.items],
        excluded_by=found.excluded_by,
        not_known=[NOT_KNOWN[entry] for entry in dict.fromkeys(unknown)],
    )


def _item(found: Suggestion, summary: AttemptSummarized, names: Mapping[str, str]) -> SuggestedChange:
    edits = [_shown(edit, names) for edit in found.edits]
    given = zip(summary.requests, found.allocation.containers, strict=True)
    return SuggestedChange(
        sentence=sentence(found, edits),
        who_acts=found.actor,
        edits=[
            SuggestedEdit(constraint=edit.constraint, where=edit.where, before=edit.before, after=edit.after)
            for edit in edits
        ],
        cost=round(found.cost, 3),
        node=found.allocation.node,
        devices=[
            ContainerDevices(container=request.container, uuids=[grant.uuid for grant in grants])
            for request, grants in given
            if grants
        ],
        fit_nodes=found.fit_nodes,
    )


def _shown(edit: Edit, names: Mapping[str, str]) -> Edit:
    if edit.constraint == "lock":
        name = names.get(edit.before, HIDDEN_POD) if edit.before else _NOT_NAMED
        return replace(edit, before=name, before_zh={HIDDEN_POD: _OTHERS_ZH, _NOT_NAMED: _NOT_NAMED_ZH}.get(name, ""))
    if edit.constraint != "use":
        return edit
    name = names.get(edit.where, HIDDEN_POD)
    return replace(edit, where=name, where_zh=_OTHERS_ZH if name == HIDDEN_POD else "")
