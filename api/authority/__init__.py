"""Authentication and authorization of callers, both by Kubernetes.

A caller presents a bearer token that the API server reviews (TokenReview), or a client certificate of a configured CA.
SubjectAccessReview decides what they may read, so that a cluster's own Roles grant it. This package decides nothing by
itself, and it refuses whatever it can't check.

====================  ====================================================================================
checks                assembly of the others by the settings
gate                  ASGI middleware: identifies the caller of each request, and ensures that handlers check rights
redacted_answer       last step of every answer: hides pods of namespaces that its caller may not read
access                rights of one request's caller, for its handler
streams               end of long answers whose caller loses a right
reviewer              TokenReview and SubjectAccessReview, each answer remembered for seconds
review_api            connection to the API server that reviews callers
remembered            answers by key, each remembered for as long as it allows; one question at a time for a key
rights                rights that answers need; pure
authorities           authorities of callers' certificates: those of files, and the API server's
issuer_keys           keys by which the cluster signs tokens of service accounts
front_proxy           callers that the API server names in headers, for the aggregated API; pure
authenticating_proxy  callers that a proxy with a login of its own names in headers; pure
credentials           callers, and the bearer tokens and client certificates that they present; pure
====================  ====================================================================================
"""
