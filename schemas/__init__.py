"""The public contract of schedulerlog: every event, document, topic, index and reason code.

Every package may import this one; it imports no other package of the project.

==============  ===================================================================================
``events``      one model per event type; models of many rows hold numpy columns
``codec``       events as Kafka records, and back
``topics``      names, keys, partitions and retention of the Kafka topics
``documents``   what OpenSearch holds, made from events and read back into them
``indices``     the families of indices: fields and retention
``index_family``  the names, the alias and the templates of one
``index_fields``  types of fields in their mappings
``placements``  a pod's time on a node, with the devices allocated to it
``forecasts``   a forecast of a waiting pod's start
``answers``     the JSON that the API returns
``described``   models whose JSON Schema holds the text below each field
``json_types``  JSON objects, as decoded
``ids``         ids derived from what a decision is, so that publishing it twice makes one document
``reasons``     every reason code with its meaning, likely cause and remedy (English and Chinese)
``generate``    the documents made from all of these: JSON Schemas, ``docs/reasons.md``
``asyncapi``    the topics and messages as an AsyncAPI document
==============  ===================================================================================
"""
