"""Index state management as far as policies need it, by what the plugin's source does (release 3, August 2026).

The plugin itself is in no repository that tests install from: this stands for it, and proves nothing about it.
"""

import json
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import httpx

POLICY_FIELDS = {"description", "default_state", "ism_template", "states", "error_notification"}
_ID = "index.plugins.index_state_management.policy_id"


@dataclass
class FakeIndexStateManagement:
    """``indices``: their names to the policy that manages each, with the number of the form that it copied."""

    indices: dict[str, tuple[str, int | None] | None] = field(default_factory=dict)
    policies: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        action, _, target = request.url.path.removeprefix("/_plugins/_ism/").partition("/")
        body = json.loads(request.content) if request.content else {}
        if request.method != "GET":
            self.writes.append(f"{request.method} {action}/{target}")
        if action == "policies":
            return self._answer_policy(request.method, target, dict(request.url.params), body)
        named = [name for name in self.indices if any(fnmatch(name, pattern) for pattern in target.split(","))]
        if action == "explain":
            return self._explain(named, int(request.url.params.get("size", "20")))
        seq_no = self.policies[body["policy_id"]][0]
        without = [name for name in named if (self.indices[name] is None) == (action == "add")]
        for name in without:
            # It copies the policy minutes later, at the first run of its job.
            self.indices[name] = body["policy_id"], None if action == "add" else seq_no
        return httpx.Response(200, json={"updated_indices": len(without), "failures": False, "failed_indices": []})

    def run(self) -> None:
        """Run the jobs of all managed indices."""
        for name, managed in self.indices.items():
            if managed and managed[1] is None:
                self.indices[name] = managed[0], self.policies[managed[0]][0]

    def _answer_policy(self, method: str, name: str, query: dict[str, str], body: Any) -> httpx.Response:
        seq_no, policy = self.policies.get(name, (-1, None))
        if method == "GET":
            if policy is None:
                return httpx.Response(404, json={"error": {"type": "status_exception", "reason": "Policy not found"}})
            # Its answers have more than was written.
            answer = policy | {"policy_id": name, "schema_version": 28, "error_notification": None}
            return httpx.Response(200, json={"_seq_no": seq_no, "_primary_term": 1, "policy": answer})
        if policy is not None and query != {"if_seq_no": str(seq_no), "if_primary_term": "1"}:
            return httpx.Response(409, json={"error": {"type": "version_conflict_engine_exception", "reason": name}})
        if not body["policy"].keys() <= POLICY_FIELDS:
            return httpx.Response(400, json={"error": {"type": "illegal_argument_exception", "reason": "field"}})
        self.policies[name] = seq_no + 1, body["policy"]
        return httpx.Response(201, json={"_id": name, "_seq_no": seq_no + 1, "_primary_term": 1})

    def _explain(self, names: list[str], size: int) -> httpx.Response:
        managed = {name: state for name in names[:size] if (state := self.indices[name])}
        states = {
            name: {_ID: policy, **({"policy_seq_no": number} if number is not None else {})}
            for name, (policy, number) in managed.items()
        }
        return httpx.Response(200, json={**states, "total_managed_indices": len(managed)})
