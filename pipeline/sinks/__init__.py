"""Sinks for results: OpenSearch and Kafka. Both wait for a store that is down, and lose nothing.

===============  ==================================================================
``opensearch``   the index: writes documents until they are written, searches
``bulk``         documents, the body of a bulk request, and the meaning of its answer
``index_watch``  notices indices that were deleted or restored
``msearch``      searches, and long answers page by page
``kafka``        the topics: sends records until they are acknowledged
===============  ==================================================================
"""
