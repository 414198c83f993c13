"""Binding a pod to its node: the node lock, the API calls, a journal of binds in progress and their recovery."""
