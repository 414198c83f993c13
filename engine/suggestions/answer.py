"""Answer to the question which change would let a pod in, and its texts in English and Chinese. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from engine.suggestions.ask import Constraint
from engine.suggestions.suggestion import Edit, Suggestion
from engine.summaries.named_pods import HIDDEN_POD
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.suggestions import ContainerDevices, SuggestedChange, SuggestedEdit, Suggestions
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

_LOWER: Final = (
    "lower {resource} of {container} from {before} to {after}",
    "将 {container} 的 {resource} 由 {before} 改为 {after}",
)
_REMOVE: Final = ("remove the annotation {where} ({before})", "删除注解 {where}（{before}）")
_CORRECTED: Final = (
    "write {after} instead of {before} in the pod's node selector",
    "将 Pod 节点选择器中的 {before} 改为 {after}",
)
"""Texts of a value in the node selector that is corrected, not dropped."""
_TEXTS: Final[Mapping[Constraint, tuple[str, str]]] = {
    "memory": _LOWER,
    "cores": _LOWER,
    "count": _LOWER,
    "type": _REMOVE,
    "uuid": _REMOVE,
    "mode": _REMOVE,
    "numa": _REMOVE,
    "policy": _REMOVE,
    "nodes": (
        "let kube-scheduler offer {after}, which a node selector, affinity, a taint or a cordon keeps from the pod",
        "让 kube-scheduler 提供节点 {after}：目前被节点选择器、亲和性、污点或封锁排除",
    ),
    "quota": (
        "raise the namespace's quota of {where} from {before} to {after}",
        "将命名空间配额 {where} 由 {before} 提高到 {after}",
    ),
    "cordon": ("uncordon the device {where}", "解除设备 {where} 的封锁"),
    "health": ("repair the unhealthy device {where}", "修复不健康的设备 {where}"),
    "registration": (
        "get the device plugin of node {where} to register its devices again ({before})",
        "让节点 {where} 的设备插件重新注册设备（{before}）",
    ),
    "lock": (
        "remove the lock that the bind of {before} left (`kubectl annotate node {where} hami.io/mutex.lock-`)",
        "删除 {before} 的绑定遗留的锁（`kubectl annotate node {where} hami.io/mutex.lock-`）",
    ),
    "use": ("wait for the end of {where}, which holds {before}", "等待 {where} 结束，它占用 {before}"),
    "taint": ("tolerate the taint {after}", "容忍污点 {after}"),
    "selector": (
        "drop {before} from the pod's node selector or affinity",
        "从 Pod 的节点选择器或亲和性中去掉 {before}",
    ),
    "request": _LOWER,
    "uncordon": (
        "uncordon the node {where} (`kubectl uncordon {where}`)",
        "解除节点 {where} 的封锁（`kubectl uncordon {where}`）",
    ),
    "node": ("add a node like {where}", "增加一个与 {where} 相同的节点"),
    "claim": (
        "write `{after}` instead of `{before}` in the selector of claim {where}",
        "将资源申领 {where} 的选择器中的 `{before}` 改为 `{after}`",
    ),
    "class": (
        "name the device class {after} instead of {before} in the claim's request `{where}`",
        "在资源申领的请求 `{where}` 中将设备类 {before} 改为 {after}",
    ),
    "volume": (
        "use a new volume claim {after} in place of {where}, whose volume {before} is out of the node's reach",
        "用新的存储卷申领 {after} 代替 {where}：节点无法访问其存储卷 {before}",
    ),
}
NOT_KNOWN: Final[Mapping[str, InBothLanguages]] = {
    name: InBothLanguages(en=english, zh=chinese)
    for name, english, chinese in (
        (
            "constraints",
            "No source says which annotations of the pod constrain its devices: the pod is judged as if it had none.",
            "没有来源说明该 Pod 对设备的注解限制，按没有限制评估。",
        ),
        (
            "devices",
            "The devices of the cluster are not known (yet): does a scheduler, or a reader of its log, publish states?",
            "尚不了解集群的设备状态：是否有调度器或日志读取器发布节点状态？",
        ),
        (
            "quotas",
            "Quotas of namespaces are in no record: a change may still exceed one.",
            "记录中没有命名空间配额，所建议的修改仍可能超出配额。",
        ),
        (
            "quotas of shares",
            "Pods' use of quotas for parts of devices is in no record: a pod, or a change, may exceed one.",
            "没有记录各 Pod 占用的设备份额配额，Pod 或所建议的修改可能超出配额。",
        ),
        (
            "states",
            "Some states of nodes are past their retention: those nodes are left out.",
            "部分节点状态已过保留期，这些节点未参与评估。",
        ),
        (
            "registrations",
            "Some nodes offer devices that they never registered: whether the pod would fit there can't be known.",
            "部分节点提供设备但从未注册，无法判断 Pod 能否放在这些节点上。",
        ),
        (
            "last registrations",
            "OpenSearch does not answer: the last registrations of unregistered nodes are unknown.",
            "OpenSearch 没有响应，不知道未注册节点上次注册的设备。",
        ),
        (
            "lost nodes",
            "Some nodes register no devices any more. Nodes that may have left the cluster were not offered.",
            "部分节点不再注册设备，其中可能已离开集群的节点未提供给调度。",
        ),
        (
            "lock",
            "A failed bind reported that the node is locked: whether it is still locked is unknown.",
            "节点被锁定是从绑定失败的记录得知的，不知道锁是否仍在。",
        ),
        (
            "holders",
            "OpenSearch does not answer: the pods that hold the devices are unknown.",
            "OpenSearch 没有响应，不知道设备由哪些 Pod 占用。",
        ),
    )
}


def write_sentence(suggestion: Suggestion, edits: Sequence[Edit]) -> InBothLanguages:
    """Write the changes as one sentence with the node. edits: those of the suggestion, as the reader may see them."""
    return write_edits(edits, suggestion.allocation.node)


def write_edits(edits: Sequence[Edit], node: str) -> InBothLanguages:
    """Write changes as one sentence with the node that they lead to."""
    english = [_find_texts(edit)[0].format(**_to_words(edit, edit.where, edit.before)) for edit in edits]
    chinese = [
        _find_texts(edit)[1].format(**_to_words(edit, edit.where_zh or edit.where, edit.before_zh or edit.before))
        for edit in edits
    ]
    # A pod that waits for a lock has passed everything but the bind.
    is_bind = all(edit.constraint == "lock" for edit in edits)
    end, end_zh = ("it can be bound to", "可绑定到") if is_bind else ("it fits on", "可调度到")
    text = f"{', and '.join(english)}: then {end} {node}."
    return InBothLanguages(en=text[0].upper() + text[1:], zh=f"{'，并'.join(chinese)}：之后{end_zh} {node}。")


def _find_texts(edit: Edit) -> tuple[str, str]:
    return _CORRECTED if edit.constraint == "selector" and edit.after else _TEXTS[edit.constraint]


def _to_words(edit: Edit, where: str, before: str) -> dict[str, str]:
    # `where` of an amount is the container with its resource.
    container, _, resource = where.partition(": ")
    return {"where": where, "container": container, "resource": resource, "before": before, "after": edit.after}


_OTHERS_ZH: Final = "其他命名空间的 Pod"
_NOT_NAMED: Final = "a pod that it does not name"
_NOT_NAMED_ZH: Final = "未注明的 Pod"


class ProvedSuggestions(NamedTuple):
    items: list[Suggestion]
    excluded_by: list[Constraint]
    fits: bool


def build_suggestions(
    summary: AttemptSummarized,
    attempt: str,
    as_of: datetime,
    proved: ProvedSuggestions,
    names: Mapping[str, str],
    unknown: Sequence[str],
) -> Suggestions:
    """Build the answer. attempt: its path; names: by uid, pods as the caller may see them."""
    return Suggestions(
        cluster=summary.cluster,
        namespace=summary.pod.namespace,
        name=summary.pod.name,
        attempt=attempt,
        as_of=format_rfc3339(as_of),
        state="placed" if summary.status == "succeeded" else "fits" if proved.fits else "refused",
        items=[_to_change(item, summary, names) for item in proved.items],
        excluded_by=proved.excluded_by,
        not_known=[NOT_KNOWN[entry] for entry in dict.fromkeys(unknown)],
    )


def _to_change(suggestion: Suggestion, summary: AttemptSummarized, names: Mapping[str, str]) -> SuggestedChange:
    edits = [_hide_names(edit, names) for edit in suggestion.edits]
    grants_by_request = zip(summary.requests, suggestion.allocation.containers, strict=True)
    return SuggestedChange(
        sentence=write_sentence(suggestion, edits),
        who_acts=suggestion.actor,
        edits=[
            SuggestedEdit(constraint=edit.constraint, where=edit.where, before=edit.before, after=edit.after)
            for edit in edits
        ],
        cost=round(suggestion.cost, 3),
        node=suggestion.allocation.node,
        devices=[
            ContainerDevices(container=request.container, uuids=[grant.uuid for grant in grants])
            for request, grants in grants_by_request
            if grants
        ],
        fit_nodes=suggestion.fit_nodes,
    )


def _hide_names(edit: Edit, names: Mapping[str, str]) -> Edit:
    if edit.constraint == "lock":
        name = names.get(edit.before, HIDDEN_POD) if edit.before else _NOT_NAMED
        return replace(edit, before=name, before_zh={HIDDEN_POD: _OTHERS_ZH, _NOT_NAMED: _NOT_NAMED_ZH}.get(name, ""))
    if edit.constraint != "use":
        return edit
    name = names.get(edit.where, HIDDEN_POD)
    return replace(edit, where=name, where_zh=_OTHERS_ZH if name == HIDDEN_POD else "")
