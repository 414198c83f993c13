"""kube-scheduler's own filters on a snapshot: a pod's verdict per node, in the scheduler's order and words.

judge               one attempt at one pod: PreEnqueue, PreFilter, the filters per node, the message
judgement           the result of judging a pod
node_judging        the filters run on nodes, with nominated pods and without victims
preemption          DefaultPreemption after a refusal
release             what releases 1.28 to 1.35 did otherwise
resource_obstacles  why no node has enough of one resource, and whose end would do
verdicts            refusals of plugins, and verdicts that unread objects leave open
cycle               what a plugin is given, and what it returns before the nodes

Plugins, one module each; SchedulingGates is in `judge`
    node_unschedulable, node_name, taint_toleration, node_affinity, node_ports, node_resources,
    volume_restrictions, volume_limits, volume_binding, volume_zone, topology_spread, pod_affinity,
    declared_features; dynamic_resources has the location that `engine.claims` fills
What they share
    tolerations, migrated_disks, free_volumes, selector_index
"""
