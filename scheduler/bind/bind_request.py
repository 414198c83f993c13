"""What kube-scheduler asks of a bind call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BindRequest:
    """Bind the pod with this namespace, name and UID to the node."""

    namespace: str
    name: str
    uid: str
    node: str
