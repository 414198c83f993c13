"""What an answer needs, collected from memory, the index and the API server.

====================  ==============================================================================
``attempt_lookup``    the latest attempt of a pod: from memory, from the index, or the newer of both
``fact_collector``    the facts of a diagnosis, from memory, the index and the API server
``exclusion``         the constraints that keep a refused pod from every node of its cluster
``change_search``     what would have to change: reads what the fit has to know, and asks it
``report_collector``  the report of failures of a range of time, from the index
====================  ==============================================================================
"""
