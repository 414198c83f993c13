"""OpenSearch, for every service: the only package that makes clients of it.

==============  ===============================================================================
``client``      the one way to make a client: URLs, TLS, who we are
``serializer``  JSON by orjson, for requests and answers
==============  ===============================================================================
"""
