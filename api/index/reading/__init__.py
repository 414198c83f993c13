"""Reads of OpenSearch over HTTP, shared fairly between callers, in pages.

==============  ================================================================================
``client``      reads over HTTP, and the meaning of OpenSearch's errors
``circuit``     circuit breaker that refuses at once while OpenSearch hangs
``turns``       fair queue: the caller that has waited longest goes first
``coalescing``  one request for all callers who ask the same while it waits
``query_dsl``   clauses of OpenSearch's query language
``pages``       lists in pages: their definition, the position of a page, and its reader
==============  ================================================================================
"""
