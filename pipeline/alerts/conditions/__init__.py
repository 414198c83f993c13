"""The conditions under which alerts fire: one module per kind of rule, with its settings and its condition. Pure.

A kind is a pair of classes, for example ``PendingRule`` (what a file of rules may set) and ``PendingCondition`` (a fold
over the inputs that finds what fires). ``pipeline.alerts.rules`` lists the kinds.

=================  ====================================================================================
``pending``        a pod is refused for the same reason again and again
``surge``          a reason refuses much more often than before
``lock``           binds to a node fail because another pod holds the node's lock
``handshake``      a node's handshake or registration is wrong
``finding``        audits found placements that can't be right
``silent``         a scheduler with waiting pods publishes nothing
``behind``         a scheduler's decisions reach Kafka late
``dropped``        a scheduler discarded device detail
``dead_letters``   records are dead-lettered
``queue``          pods wait at a queue that lets none go
``gang``           pods of a group wait, and none has a node
``kubelet``        a node's kubelet refuses pods
``autoscaler``     the autoscaler can add no node for waiting pods
``observed_waits`` waiting pods of queues and groups, as the cluster shows them
``condition``      the base class of rules, the protocol of conditions, and the cases in which they hold
``occurrences``    series and counts of occurrences over time
=================  ====================================================================================
"""
