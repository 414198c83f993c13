"""What a suggestion says to people, in English and Chinese."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.suggestions.ask import Constraint
from engine.suggestions.suggestion import Edit, Suggestion
from schemas.answers.diagnosis import InBothLanguages

_LOWER: Final = (
    "lower {resource} of {container} from {before} to {after}",
    "将容器 {container} 的 {resource} 由 {before} 改为 {after}",
)
_REMOVE: Final = ("remove the annotation {where} ({before})", "删除注解 {where}（{before}）")
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
            "OpenSearch does not answer: what unregistered nodes registered last is not known.",
            "OpenSearch 没有响应，不知道未注册节点上次注册的设备。",
        ),
        (
            "lost nodes",
            "Some nodes register no devices any more. Of those that may have left the cluster none was offered.",
            "部分节点不再注册设备，其中可能已离开集群的节点未提供给调度。",
        ),
        (
            "lock",
            "That the node is locked is known of a bind that failed: whether it still is can't be known.",
            "节点被锁定是从绑定失败的记录得知的，不知道锁是否仍在。",
        ),
        (
            "holders",
            "OpenSearch does not answer: which pods hold the devices is not known.",
            "OpenSearch 没有响应，不知道设备由哪些 Pod 占用。",
        ),
    )
}


def sentence(suggestion: Suggestion, edits: Sequence[Edit]) -> InBothLanguages:
    """The changes as one sentence with the node. edits: those of the suggestion, as the reader may see them."""
    english = [_TEXTS[edit.constraint][0].format(**_words(edit, edit.where, edit.before)) for edit in edits]
    chinese = [
        _TEXTS[edit.constraint][1].format(**_words(edit, edit.where_zh or edit.where, edit.before_zh or edit.before))
        for edit in edits
    ]
    node = suggestion.allocation.node
    # Of a pod that a lock keeps waiting, everything but the bind has passed.
    is_bind = all(edit.constraint == "lock" for edit in edits)
    end, end_zh = ("it can be bound to", "可绑定到") if is_bind else ("it fits on", "可调度到")
    text = f"{', and '.join(english)}: then {end} {node}."
    return InBothLanguages(en=text[0].upper() + text[1:], zh=f"{'，并'.join(chinese)}：之后{end_zh} {node}。")


def _words(edit: Edit, where: str, before: str) -> dict[str, str]:
    # Of an amount, `where` is the container with its resource.
    container, _, resource = where.partition(": ")
    return {"where": where, "container": container, "resource": resource, "before": before, "after": edit.after}
