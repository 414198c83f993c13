"""OpenSearch, for every service: the only package that makes clients of it.

==============  ===============================================================================
``client``      the one way to make a client: URLs, TLS, who we are
``refusals``    what its refusals mean to an operator
``roles``       what each process may do there
``serializer``  JSON by orjson, for requests and answers
==============  ===============================================================================
"""
