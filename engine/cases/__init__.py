"""Facts about the pods of a case: what was read of a cluster at one moment, from files or a live cluster. Pure.

pod_facts          facts about a pod for the diagnosis
simulating         pods simulated on the objects of a case, and changes after which a pod of it fits
refused_pods       a pod that its scheduler refused, with the reason of each node and device
judging            a waiting pod judged on the nodes of the case, by the filters and by HAMi's fit
workload_words     words that name kinds of workloads, and the kinds
workload_lists     lists of objects that an answer about a workload needs
workloads          a workload with its family and its pods
unmade_pods        pods that a workload has not made yet
unmade_causes      causes of pods that a workload does not make by itself
unmade_answers     diagnosis of pods that do not exist yet
workload_answers   answers about workloads: their pods by what keeps them
workload_timeline  events of a workload and its pods over the layers
held_devices       devices that a placed pod holds
node_answers  nodes with what pods hold of their devices
similar_names      names that are most similar to one that does not exist
anonymous_objects  objects with replaced names
"""
