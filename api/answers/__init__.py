"""Facts of an answer, collected from memory, the index and the API server, and a cache of answers.

====================  ==============================================================================
``attempt_lookup``    latest attempt of a pod: from memory, from the index, or the newer of both
``ready_answers``     answers as sent, which the HTTP protocol sends again without the application
``fact_collector``    facts of a diagnosis, from memory, the index and the API server
``circumstances``     facts about a pod and what it names, from objects of the API server
``object_api``        connection to that API server
``exclusion``         constraints that keep a refused pod from every node of its cluster
``change_search``     changes that would place a pod: reads the cluster's state and asks the fit
``report_collector``  report of failures of a range of time, from the index
====================  ==============================================================================
"""
