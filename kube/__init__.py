"""Talking to a Kubernetes API server: credentials, requests, list and watch with resume, leader election by Lease.

Knows nothing of GPUs, HAMi or our events; the services share it because they do not import each other. `notices`,
`mirror`, `lease`, `backoff` and `rate` are pure; `credentials`, `client`, `reflector` and `election` touch the network.
Objects are Kubernetes objects as decoded JSON.
"""
