"""Commands of an operator.

``provision``  makes topics and index templates, or corrects them
``roles``      makes the roles of schedulerlog in OpenSearch's security plugin
``policies``   makes policies of OpenSearch's index state management, which deletes most of them by itself
``retention``  deletes indices that are older than they are kept
``months``     when a family's next month gets one index in place of one a day
``trend_hours`` sums counts of minutes up into hours
``document_deletion`` deletes the documents that a query matches
``dead_letters`` lists, shows and replays records that could not be processed
"""
