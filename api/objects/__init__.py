"""Objects of the Kubernetes API server that explain a pod which no record explains.

object_api       the connection: with the API's own service account, or a kubeconfig
circumstances    the pod, and what it names: claims, quotas, events, nodes
"""
