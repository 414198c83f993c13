"""A client for the Kubernetes API server: requests, list and watch with resume, leader election by Lease.

Knows nothing of GPUs and HAMi. Several services use it, because services never import each other. Objects
are Kubernetes objects as decoded JSON. Pure, without network or clock:

resources              paths of the kinds of objects that we read and write
object_fields          fields of objects, whatever their JSON holds, and the marks of events that we write
pod_description        origin of a pod: its owners, group, queue and labels
errors                 errors, named for what the caller must do
watch_events           decoder of the lines of a watch
store                  existing objects, from lists, watch events and our writes
lease                  rules of a Lease: the leader, and the object to write

With network:

credentials            address of the API server, and our token or certificate
client                 requests, on connections that close without waiting for the server
reflector              list and watch: keeps a handler informed of every change
leadership             interface of a leader election to its user
election               leadership while we hold our Lease
colocated_leadership   leadership while the kube-scheduler in our pod holds its Lease
"""
