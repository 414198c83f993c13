"""Parts that exist so that HAMi's users keep their dashboards, logs and manifests.

klog       decisions as HAMi's log lines
metrics    HAMi's metrics, under its names
arguments  arguments of HAMi's scheduler as ours
"""
