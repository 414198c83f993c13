"""Pods that wait now.

====================  =================================================================
``waiting_pods``      waiting pods with their obstacles, and workloads without their pods
``waiting_groups``    waiting pods by workload, or by obstacle
``waiting_requests``  requests of waiting pods
====================  =================================================================
"""
