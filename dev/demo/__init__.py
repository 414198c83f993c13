"""The main job, end to end, on this machine: real processes, a real broker, a real index.

The demo uses the services from outside, as kube-scheduler and a person would:

api_server       simulates what the services read of an API server
kube_scheduler   simulates kube-scheduler: asks the scheduler service to filter and to bind
cluster_file     edits the file that the scheduler service reads as its cluster
reader           reads answers from the API and event messages from their topic
scenarios        compares the answers with those that docs/demo.md works out by hand
many             tries the pods of a Job, and reads the plan of a drain
story            shows the same pods as a person reads them
drawing          draws the cluster of the story
processes        starts and stops the services
stack            all of it together: servers, services, cluster file
"""
