"""Answers to kube-scheduler's filter and bind calls.

extender_protocol  bodies of kube-scheduler's extender protocol (pure)
service            answers filter and bind calls
bind_calls         answers a bind call in time, whatever the bind takes
pod_guard          calls about a pod that wait or are refused
records            destinations of the records of a decision
"""
