"""OpenSearch, for every service: the only package that makes clients of it.

==============  ===============================================================================
``client``      the one way to make a client: URLs, TLS, credentials, JSON by orjson
``refusals``    refusals in words for an operator
``roles``       rights of each process
==============  ===============================================================================
"""
