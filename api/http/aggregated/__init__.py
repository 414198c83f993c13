"""The API's answers as an aggregated API of Kubernetes, which ``kubectl get --raw`` reads with kubectl's credentials.

The API server forwards requests below ``/apis/schedulerlog.io/v1alpha1`` (an APIService names the group). The handler
of the same path below ``/api/v1`` answers them; only the paths and the form of errors differ.

===========  ===========================================================================
adapter      ASGI middleware that translates requests and answers; routes of discovery
translation  paths below ``/api/v1`` and errors as a ``Status`` of Kubernetes; pure
discovery    documents in which Kubernetes reads which resources exist; pure
===========  ===========================================================================
"""
