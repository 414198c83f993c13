"""Request of a pod, read from its containers and annotations.

pod_request      the requests of all containers: `list_requests`
vendor_requests  requests of vendors other than NVIDIA
pod_annotations  requirements of devices and nodes in the pod's annotations
pod_constraints  both for one vendor, with the cluster's side: the same for all nodes of an attempt
device_request   one container's request in the form that the checks use
"""
