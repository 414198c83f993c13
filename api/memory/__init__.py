"""Memory of the API: the latest attempts of the latest pods, the devices of the clusters, and alerts.

==================  ==========================================================================
topic_follower      reads the last records of a topic, then every new one
attempts_consumer   reads the topic of attempts into memory and measures the delay of decisions
pods_consumer       reads the topic of pods for what waits without attempts
change_log          latest changes in their order, and their subscribers
wait_log            changes of pods that wait, from attempts and observations
latest_attempts     pod to its latest attempt, as the bytes of its records
cluster_devices     reads the topic of node states into columns that the fit judges
known_names         names of pods, workloads, nodes and namespaces
alert_memory        latest state of every alert, and the time up to which the rules are evaluated
topic_replay        reads a topic from its beginning at every start, then follows it
nearest_node        the node that lacks least for a request now
lru                 least-recently-used store, bounded by count and by bytes
==================  ==========================================================================
"""
