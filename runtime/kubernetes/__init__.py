"""A client for the Kubernetes API server: requests, list and watch with resume, leader election by Lease.

Knows nothing of GPUs and HAMi. Several services use it, because services never import each other. Objects
are Kubernetes objects as decoded JSON. Pure, without network or clock:

resources              paths of the kinds of objects that we read and write
object_fields          fields of objects, whatever their JSON holds
own_events             the marks of the Kubernetes events that this project writes
pod_description        where a pod comes from: its owners, group, queue and labels
errors                 what can go wrong, named for what the caller must do
rate_limiter           a token bucket for requests
watch_events           decodes the lines of a watch
store                  which objects there are, from lists, watch events and own writes
lease                  the rules of a Lease: who leads, and what to write

With network:

credentials            the API server's address and our token or certificate
connector              connections, which close without waiting for the server
client                 requests
reflector              list and watch: keeps a handler informed of every change
leadership             what a leader election offers to its user
election               leads while our own Lease is ours
colocated_leadership   leads while the kube-scheduler in our pod holds its Lease
"""
