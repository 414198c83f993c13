"""Answers from the cluster itself where no API of schedulerlog is installed: read-only, with the user's kubeconfig.

reader      reads objects by kubectl, several at a time, and notes what the user may not read
pod_case    reads what a question about one pod needs, as a case
node_lists  the list of nodes with their pools
simulation  pods that do not exist yet, on the cluster as it is now
waiting_pods  pods that wait, each with its main obstacle
transport   answers the paths of the API from such a case
workload_case  reads what a question about a workload needs
waiting_groups  waiting pods by workload or obstacle
polled_changes  changes that are found by reading again
scheduler_logs  reads the log of the pod's scheduler
rungs       what an answer stands on, and what further rights would add
"""
