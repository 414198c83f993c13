"""Messages to people who subscribed: a workload waits for another reason than before, or it starts.

    API's watch of waiting pods ──▶ waiting_workloads ──▶ process ──▶ delivery ──▶ webhook, mail, CloudEvents
                                       (what is news)       │  ▲
                                annotations on the API server  sent_memory

The annotation ``schedulerlog.io/notify`` on a pod, its workload or its namespace is the only subscription; targets are
those of the operator's file.

=====================  =========================================================================
``targets``            the operator's file of targets
``waiting_workloads``  pure: waiting pods by workload, and the obstacle that most of them have
``messages``           pure: a message as text, mail and CloudEvent
``delivery``           one message to one target
``subscriptions``      targets that the annotations of a workload name
``sent_memory``        what was sent last, in a ConfigMap or a file
``process``            the process: watches, waits until news lasts, sends, remembers
``service``            clients, memory, metrics and readiness around it
``command``            the command line
=====================  =========================================================================
"""
