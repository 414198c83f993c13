"""``schedulerlog doctor``: finds what keeps an installation from working, with remedies. It changes nothing.

===================  ===============================================================================
``__main__``         the command line: which checks, text or JSON, exit code
``checks``           all checks of what the settings name, side by side
``settings``         the addresses of Kafka, OpenSearch and the cluster
``findings``         findings, and their text and JSON; clocks that differ (pure)
``kafka``            reachability, topics, replication
``opensearch``       reachability, health, templates, clock
``certificates``     names and expiry, of servers and in our files
``cluster``          versions, clock, rights and pods at the API server
``rights``           the rights of each process, as deploy/ gives them
``workloads``        pods that do not start: images, Secrets, settings (pure)
``schedulers``       settings of kube-scheduler and of HAMi's Deployment (pure)
``devices``          resources of the vendors that nodes have, nodes of two schedulers (pure)
===================  ===============================================================================
"""
