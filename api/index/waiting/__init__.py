"""What waits now.

=====================  =============================================
``waiting_pods``       which pods wait now, with what keeps them out
``waiting_groups``     the same by workload, or by obstacle
``waiting_requests``   what the pods that wait ask for
``blocked_workloads``  which workloads could not make their pods
=====================  =============================================
"""
