"""Readers: from lines and objects of one kind of scheduler to events. Pure, except the services next to them.

hami         HAMi's scheduler log
kai          KAI-Scheduler's log
kube         pods, nodes and events of a cluster
kube_scheduler, volcano: logs of schedulers that count nodes, in the words of their events
sniffer      scheduler-sniffer's log and gRPC service
raw_logs     the topic to which log shippers send lines
node_states  states of nodes' devices in logs, with a revision of their content
registry     the readers of logs, by name
"""
