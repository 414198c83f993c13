"""Binds for the journal, with what a test does not name filled in."""

from datetime import timedelta

from engine.fit.events.attempt import AttemptRef, Identity
from scheduler.bind.bind_journal import OpenBind
from schemas.events import PodRef
from tests.support.builders.kube_objects import STARTED

BEGAN = STARTED + timedelta(milliseconds=5)
LATER = STARTED + timedelta(milliseconds=30)


def a_bind(name: str = "pod1", node: str = "node1") -> OpenBind:
    pod = PodRef(namespace="default", name=name, uid=f"uid-{name}")
    return OpenBind(AttemptRef.start(Identity("default", "hami-scheduler"), pod, STARTED), node, BEGAN)
