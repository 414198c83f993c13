"""``schedulerlog doctor``: what keeps an installation from working, each with its remedy. It changes nothing.

===================  ===============================================================================
``__main__``         the command line: which checks, text or JSON, exit code
``checks``           all checks of what the settings name, side by side
``settings``         where Kafka, OpenSearch and the cluster are
``findings``         what a check reports, and how it is shown
``kafka``            reachability, topics, replication
``opensearch``       reachability, health, templates, clock
``certificates``     what servers present and what our files hold: names, expiry
``clock``            clocks that differ (pure)
``cluster``          versions, clock, rights and pods at the API server
``rights``           the rights of each process, as deploy/ gives them
``workloads``        why pods do not start: images, Secrets, settings (pure)
``schedulers``       settings of kube-scheduler and of HAMi's Deployment (pure)
===================  ===============================================================================
"""
