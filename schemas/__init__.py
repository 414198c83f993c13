"""The public contract of schedulerlog: every event, document, topic, index and reason code.

Everybody may import this package; it imports nobody of ours.

=============  ====================================================================================
``ids``        ids derived from what a decision is, so that telling it twice makes one document
``columns``    parallel JSON arrays <-> numpy arrays
``events``     one model per event type; the ones made of many rows hold numpy columns
``records``    an event as a Kafka record (key, JSON value, CloudEvents headers) and back
``runs``       cutting a long event into records below the size every intermediary forwards
``tables``     small tables with columns that point into them
``topics``     names, keys, partitions and retention
``documents``  what OpenSearch holds for an attempt, and back
``stays``      a pod's time on a node with its devices
``indices``    index names, aliases and templates
``answers``    the JSON that the API gives to people; ``placement_answers`` about placements
``reasons``    every reason code with its meaning, likely cause and remedy (English and Chinese)
``generate``   the documents made from all of these: JSON Schemas, ``docs/reasons.md``
``asyncapi``   the topics and messages as an AsyncAPI document
=============  ====================================================================================
"""
