"""How OpenSearch is read: over HTTP, fairly between callers, in pages.

==============  ================================================================================
``client``      the reads over HTTP, and what OpenSearch's errors mean
``circuit``     refuses at once while OpenSearch hangs
``probe``       whether OpenSearch answers, for /readyz
``turns``       who asks next, of all callers that wait
``coalescing``  one request for all callers who ask the same while it waits
``query_dsl``   clauses of OpenSearch's query language
``page_query``  lists in pages: their definition, the position of a page, the body that reads it
``pages``       reads one page
``decoding``    decodes a document, or raises which one can't be read
==============  ================================================================================
"""
