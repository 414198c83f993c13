"""Serves schedulerlog: what became of a pod, its history, and search over all attempts.

The latest pods are answered from memory, which the topic of attempts fills (``topic``, ``latest``, ``lru``); older
ones, histories and searches come from OpenSearch (``opensearch``). What lies between a request and bytes is pure:

=============  ====================================================================================
``queries``    what may be asked, checked field by field
``tokens``     opaque, checked places to continue from
``paging``     long lists in pages; ``listing`` reads a page and answers it, ``continuing`` is the way on over HTTP
``finds``      questions about attempts as OpenSearch bodies, and what its hits say
``findings``   the same for what audits found, ``stays`` for which pod was where, ``seen`` for what was observed
``occupancy``  what was held of a node's devices at one time
``episodes``   attempts in a row with the same verdicts
``errors``     every error as JSON: the cause and what to do next
``pages``      the documentation page, written from the OpenAPI document
``routes``     the list of routes; ``endpoints`` and ``placements`` answer them, ``app`` puts all of it together
=============  ====================================================================================
"""
