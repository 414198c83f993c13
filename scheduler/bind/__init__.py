"""Binding a pod to the node that the filter chose, and recovering binds that were cut off.

bind_request     what kube-scheduler asks for
binder           takes the node's lock, marks the pod, writes the binding
node_locks       takes and releases a node's lock
bind_journal     binds without a recorded end, on disk
bind_recovery    finds out how those ended
"""
