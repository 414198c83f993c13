"""The same answers as an aggregated API of Kubernetes: `kubectl get --raw` reads them, with kubectl's own credentials.

The API server sends on what is below ``/apis/schedulerlog.io/v1alpha1`` (an APIService names the group). A request is
answered by the handler of its path below ``/api/v1``; only the paths and the form of errors differ.

=========  =============================================================================
adapter    ASGI middleware: translates the path of a request and the errors of its answer
paths      pure: the path below ``/api/v1`` of each path of the aggregated API
discovery  pure: the documents in which Kubernetes reads what there is
statuses   pure: an error as a ``Status`` of Kubernetes
=========  =============================================================================
"""
