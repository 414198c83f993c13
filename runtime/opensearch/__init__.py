"""OpenSearch, for every service: the only package that makes clients of it.

==============  ===============================================================================
``client``      creation of clients: URLs, TLS, credentials
``refusals``    refusals in words for an operator
``roles``       rights of each process
``serializer``  JSON by orjson, for requests and answers
==============  ===============================================================================
"""
