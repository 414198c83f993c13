"""Where results go: OpenSearch and Kafka. Both sinks wait for a store that is down, and lose nothing.

===============  ==================================================================
``opensearch``   the index: writes documents until they are written, searches
``bulk``         documents, and the body of a bulk request
``bulk_result``  what the index's answer means for a document
``index_watch``  notices indices that were deleted or restored
``msearch``      searches, and long answers page by page
``kafka``        the topics: sends records until they are acknowledged
``metrics``      what the sinks of a process count
===============  ==================================================================
"""
