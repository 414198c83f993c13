"""Who asks, and what they may read: Kubernetes answers both.

A caller is known by a bearer token that the API server reviews (TokenReview), or by a client certificate of a
configured CA. What they may read is asked by SubjectAccessReview, so that a cluster's own Roles say it. Nothing here
decides by itself, and whatever can't be answered is refused.

====================  ====================================================================================
checks                assembles the others by the settings
gate                  ASGI middleware: finds the caller of each request, and sees that rights were asked for
access                what the handler of a request asks: is this allowed, which namespaces may be shown
readable_namespaces   of which namespaces the caller may list the pods
streams               how an answer that takes long ends when its caller may no longer read it
reviewer              TokenReview and SubjectAccessReview, each answer remembered for seconds
review_api            the connection to the API server that reviews callers
remembered            remembers answers by key, for as long as each allows; one question at a time for a key
rights                pure: the rights that answers need
authorities           whose certificates name callers: the authority of a file, and the API server's
front_proxy           pure: the caller that the API server names in headers, for the aggregated API
certificates          pure: the caller that a client certificate names
tokens                pure: the bearer token of a request, and when it ends
caller                who asks
====================  ====================================================================================
"""
