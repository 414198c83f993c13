"""Policies of OpenSearch's index state management (ISM), which deletes indices by itself. Safe to run again.

A policy for every family whose indices may go by their age alone. Placements that have not ended and single documents
of ``schedulerlog-pod-states`` are beyond ISM: `retention` deletes those families all the same
(docs/decisions/0034).
"""

import json
from datetime import timedelta
from typing import Any, Final

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import OpenSearchException

from pipeline.admin.months import MADE_AHEAD
from pipeline.admin.provision import Say
from pipeline.admin.retention import derive_retention
from pipeline.settings import RetentionSettings
from runtime.errors import SettingError, UnreachableError
from runtime.opensearch.client import create_client
from runtime.opensearch.refusals import explain_refusal
from runtime.settings.variables import derive_variable
from schemas.index_family import LONGEST_MONTH, WHOLE_MONTH, Index
from schemas.indices import INDICES, OF_DAYS

_API: Final = "/_plugins/_ism"
_OF_MONTHS: Final = "-months"
"""End of the id of a policy of whole months, behind the alias."""
# Above that of a policy for `*`, which then does not take our indices; of equal ones ISM refuses the second.
PRIORITY: Final = 100
POLICY_ID: Final = "index.plugins.index_state_management.policy_id"
_NEEDED: Final = "cluster:admin/opendistro/ism/* and indices:admin/opensearch/ism/managedindex (role all_access)"

_MAX_INDICES: Final = 10_000
"""Limit of explained indices of a family; ISM explains twenty unless asked for more."""

BY_POLICY: Final = tuple(index for index in INDICES if index.period != "all" and not index.kept_while)
"""The families whose indices ISM may delete."""


def to_policy(index: Index, keep: timedelta) -> dict[str, Any]:
    """Make the policy of a family whose indices are kept for ``keep`` after their day or month.

    ISM counts from when an index was made, at the earliest when that time began: hence its length more.
    """
    return _to_policy(index, keep, index.longest_period, f"{index.alias}-*", PRIORITY)


def to_month_policy(index: Index, keep: timedelta) -> dict[str, Any]:
    """Make the policy of the whole months of a family that has an index a day otherwise: each is made before it
    begins."""
    pattern = f"{index.alias}-*.{WHOLE_MONTH}"
    return _to_policy(index, keep, LONGEST_MONTH + MADE_AHEAD[1], pattern, PRIORITY + 1)


def _to_policy(index: Index, keep: timedelta, longest: timedelta, pattern: str, priority: int) -> dict[str, Any]:
    age = f"{(keep + longest).days}d"
    expires = {"state_name": "expired", "conditions": {"min_index_age": age}}
    return {
        "description": f"{index.alias}: kept for {keep.days} days",
        "default_state": "kept",
        "ism_template": [{"index_patterns": [pattern], "priority": priority}],
        "states": [
            {"name": "kept", "actions": [], "transitions": [expires]},
            {"name": "expired", "actions": [{"delete": {}}], "transitions": []},
        ],
    }


def to_policies(settings: RetentionSettings) -> dict[str, dict[str, Any]]:
    """Make the policies by their ids, in the order in which indices get them. Raises ``SettingError`` for what ISM
    can't keep."""
    if settings.kept_clusters:
        raise SettingError(
            f"{derive_variable('kept_clusters')}: index state management deletes whole indices, whosever they are; "
            "leave the deletion to `schedulerlog pipeline retention`"
        )
    # An index that has a policy is not given another: those of months come first.
    months = {
        f"{alias}{_OF_MONTHS}": to_month_policy(index, derive_retention(settings, index))
        for alias, index in OF_DAYS.items()
    }
    return months | {index.alias: to_policy(index, derive_retention(settings, index)) for index in BY_POLICY}


def to_json(settings: RetentionSettings) -> str:
    """Encode the bodies of ``PUT _plugins/_ism/policies/ID``, by id. Raises ``SettingError``."""
    return json.dumps({name: {"policy": content} for name, content in to_policies(settings).items()}, indent=2)


async def make_policies(settings: RetentionSettings, say: Say) -> None:
    """Make or correct every policy, for indices that are there too; ``say`` gets a line about each.

    Raises ``SettingError``, ``UnreachableError``.
    """
    wanted = to_policies(settings)
    client = create_client(settings)
    try:
        for name, content in wanted.items():
            done, seq_no = await _write(client, name, content)
            (template,) = content["ism_template"]
            (pattern,) = template["index_patterns"]
            say(f"policy {name}: {done}, {await _give(client, name, pattern, seq_no)}")
    except OpenSearchException as error:
        raise UnreachableError(f"OpenSearch at {settings.opensearch_url}: {explain_refusal(error, _NEEDED)}") from None
    finally:
        await client.close()


async def _write(client: AsyncOpenSearch, name: str, content: dict[str, Any]) -> tuple[str, int]:
    """Write the policy; return what was done, and the number of the policy's last write."""
    path = f"{_API}/policies/{name}"
    stored: dict[str, Any] = await client.transport.perform_request("GET", path, ignore=(404,))
    if _contains(stored.get("policy"), content):
        return "is as it should be", stored["_seq_no"]
    # Without these, ISM refuses to write over a policy that is there.
    over = {"if_seq_no": stored["_seq_no"], "if_primary_term": stored["_primary_term"]} if "policy" in stored else {}
    written = await client.transport.perform_request("PUT", path, params=over, body={"policy": content})
    return "written", written["_seq_no"]


async def _give(client: AsyncOpenSearch, name: str, pattern: str, seq_no: int) -> str:
    """Give the policy to the indices that have none, and to those that keep an older form of it."""
    body = {"policy_id": name}
    added = await client.transport.perform_request("POST", f"{_API}/add/{pattern}", body=body)
    managed = await client.transport.perform_request("GET", f"{_API}/explain/{pattern}", params={"size": _MAX_INDICES})
    states = {index: state for index, state in managed.items() if isinstance(state, dict) and state.get(POLICY_ID)}
    # An index copies the policy at its first run, minutes after it was given: until then it has no number.
    older = [
        index for index, state in states.items()
        if state[POLICY_ID] == name and state.get("policy_seq_no", seq_no) != seq_no
    ]  # fmt: skip
    if older:
        await client.transport.perform_request("POST", f"{_API}/change_policy/{','.join(older)}", body=body)
    others = sum(state[POLICY_ID] not in (name, f"{name}{_OF_MONTHS}") for state in states.values())
    left = f"; {others} have another policy, which is left to them" if others else ""
    return f"given to {added['updated_indices'] + len(older)} indices{left}"


def _contains(stored: Any, wanted: Any) -> bool:
    """Tell whether everything wanted is there. ISM adds fields of its own (retries of actions, times) at every
    depth."""
    if isinstance(wanted, dict):
        return isinstance(stored, dict) and all(_contains(stored.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(stored, list) and len(stored) == len(wanted) and all(map(_contains, stored, wanted))
    return bool(stored == wanted)
