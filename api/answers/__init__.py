"""Facts of an answer, collected from memory, the index and the API server, and a cache of answers.

====================  ==============================================================================
``attempt_lookup``    latest attempt of a pod: from memory, from the index, or the newer of both
``ready_answers``     answers as sent, which the HTTP protocol sends again without the application
``fact_collector``    facts of a diagnosis, from memory, the index and the API server
``circumstances``     facts about a pod from the objects around it, and what was worked out on them
``pod_case``          objects around a pod, which the direct mode reads as well
``workload_case``     objects around a workload, in the same way
``creation_objects``  objects by which the API server completes or refuses a new pod
``object_lists``      lists of objects, bounded, trimmed, and remembered for all questions
``case_judges``       judges of pods on those lists
``object_api``        connection to that API server
``exclusion``         constraints that keep a refused pod from every node of its cluster
``change_search``     changes that would place a pod: reads the cluster's state and asks the fit
``report_collector``  report of failures of a range of time, from the index
====================  ==============================================================================
"""
