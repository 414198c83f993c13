"""The HTTP side: the extender protocol of kube-scheduler, the server and its certificates."""
