"""What is answered from memory: the latest attempts of the latest pods, and the devices of the clusters.

==================  ==========================================================================
attempts_consumer   reads the topic and puts its records into memory
change_log          the latest changes in their order, and who waits for which of them
decision_delay      how late an attempt is when it is in memory
latest_attempts     pod to its latest attempt, as the bytes of its records
cluster_devices     reads the topic of node states into columns that the fit judges
recent_states       node states by their ids, as the bytes of their records
nearest_node        what nodes lack for a request as they are now
lru                 a least-recently-used store, bounded by count and by bytes
==================  ==========================================================================
"""
