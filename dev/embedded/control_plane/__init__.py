"""A real Kubernetes control plane on this machine without Docker: for tests and for trying things out.

with control_plane() as cluster:
    cluster.kubectl("get", "namespaces")
    cluster.start_scheduler({"profiles": [{"schedulerName": "mine"}]})
    cluster.api_server.kill()
    cluster.api_server.start()

``python -m dev.embedded kubernetes up`` does the same for people. Needs the packages of the development environment.

cluster            the control plane of one folder, started and stopped in order
folder             the same for the command line: programs that keep running after the command
command_line       ``python -m dev.embedded kubernetes``
programs           etcd, API server, controllers, scheduler and kwok: their flags, and how to see that they are ready
credentials        certificate authority, certificates, tokens and kubeconfigs
state              ports and processes of the programs, kept in ``state.json``
build, toolchain   the executable with all programs, and Helm, compiled once, and the Go that compiles them
commands, steps    runs a long command and shows how far it is
"""

from dev.embedded.control_plane.cluster import ControlPlane, control_plane

__all__ = ["ControlPlane", "control_plane"]
