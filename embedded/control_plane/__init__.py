"""A real Kubernetes control plane on this machine without Docker: for tests, and for people who try things.

with control_plane() as cluster:
    cluster.kubectl("get", "namespaces")
    cluster.start_scheduler({"profiles": [{"schedulerName": "mine"}]})
    cluster.api_server.kill()
    cluster.api_server.start()

``python -m embedded kubernetes up`` does the same for people. Needs the packages of the development environment.
"""

from embedded.control_plane.cluster import ControlPlane, control_plane
from embedded.control_plane.credentials import Authority

__all__ = ["Authority", "ControlPlane", "control_plane"]
