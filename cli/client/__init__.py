"""Asks the API: as a program beside kubectl, or over HTTP. Both transports have one interface, and errors are values.

==============  =====================================================================================
problems        reasons for a missing answer, as values with cause and next step
transport       the interface: ``get``, ``post``, ``stream``
wording         the API's words about parameters and paths in those of a terminal
requests        pure: the path of each answer, and that path in the aggregated API
url             over HTTP, by a URL and a bearer token
fallback        another transport where the cluster has no API
kubectl         by ``kubectl get --raw``: kubectl reads the kubeconfig, contexts, plugins, and logs in
proxy           by one ``kubectl proxy`` for many requests, on a socket that only its owner can open
==============  =====================================================================================

It starts at once: nothing here needs more than the standard library.
"""
