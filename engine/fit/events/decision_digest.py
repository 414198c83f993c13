"""Digest of a decision that chose no node: equal for two decisions whose records say the same but for their times.

kube-scheduler offers the nodes in another order each time, so the order is left out.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import Ints
from engine.fit.events.event_builder import Circumstances, to_request
from engine.fit.judge.decision import Decision
from engine.fit.judge.judgement import ContainerJudgement
from schemas.codec.records import encode_value


def digest_refusals(decision: Decision, circumstances: Circumstances) -> bytes:
    """Digest everything that the records of a decision without a fitting node say, but the revisions of states.

    Two digests can be compared while the registrations of nodes are the same: until then an id means one node, and a
    position one device of it.
    """
    order = _sort_ids(decision.ids)
    digest = blake2b(encode_value(_list_shared(decision, circumstances)), digest_size=16)
    columns: list[NDArray[Any]] = [decision.ids, decision.node_verdict, decision.refused_by, _rank_refusals(decision)]
    _update(digest, [column[order] for column in columns])
    for judgement in decision.judgements:
        _update(digest, _list_columns(judgement, decision.ids))
    return digest.digest()


def _sort_ids(ids: Ints) -> Ints:
    """Return the places of the ids of registered nodes in the order of the ids."""
    # They are different and small: no comparisons are needed, which would take a third of the digest.
    places = np.full(int(ids.max(initial=-1)) + 2, -1, np.int64)
    places[ids] = np.arange(len(ids))
    return places[:-1][places[:-1] >= 0]


def _list_shared(decision: Decision, circumstances: Circumstances) -> dict[str, Any]:
    unregistered = [decision.node_names[node] for node in np.flatnonzero(decision.ids < 0).tolist()]
    return {
        "offered": len(decision.ids),
        "requests": [to_request(container) for container in decision.containers],
        "containers": [judgement.container for judgement in decision.judgements],
        "description": circumstances.description,
        "settings": circumstances.settings_digest,
        "constraints": circumstances.constraints,
        "policies": [decision.node_policy, decision.device_policy],
        "refusals": [[*refusal] for refusal in sorted(decision.refusals)],
        "unregistered": [[name, decision.node_causes.get(name, "")] for name in sorted(unregistered)],
    }


def _rank_refusals(decision: Decision) -> Ints:
    """Return each node's refusal by its place in the sorted table, shape (n,): the table has the order of the nodes."""
    places = sorted(range(len(decision.refusals)), key=decision.refusals.__getitem__)
    # The last entry is for -1: nodes without a refusal.
    ranks = np.full(len(places) + 1, -1, np.int64)
    ranks[places] = np.arange(len(places))
    return ranks[decision.refusal]


def _list_columns(judgement: ContainerJudgement, ids: Ints) -> list[NDArray[Any]]:
    """List the columns of a judgement in the order of the nodes' ids."""
    nodes = ids[judgement.nodes]
    order = _sort_ids(nodes)
    counts = judgement.rows[order]
    # The rows of each node in turn: from its first one on, as many as it has.
    first_rows = judgement.offsets[:-1][order]
    rows = np.repeat(first_rows - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    columns = [nodes[order], counts, judgement.devices[order], judgement.verdict[rows]]
    return columns if judgement.is_complete.all() else [*columns, judgement.device[rows]]


def _update(digest: blake2b, columns: Sequence[NDArray[Any]]) -> None:
    for column in columns:
        # With the length: without it, the end of one column could be the beginning of the next.
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(column.tobytes())
