"""What several sources say of one pod, as one description. Pure."""

from schemas.events import PodDescription


def merged_description(one: PodDescription | None, other: PodDescription | None) -> PodDescription | None:
    """Every field from the source that says more of it. Neither the order nor the repetition of sources matters."""
    if one is None or other is None or one == other:
        return one or other
    created = [description.created_at for description in (one, other) if description.created_at]
    priorities = [description.priority for description in (one, other) if description.priority is not None]
    return PodDescription(
        created_at=min(created, default=None),
        # The longer chain reaches further up; a source may know no more than the pod's own controller.
        owners=max(one.owners, other.owners, key=lambda owners: (len(owners), repr(owners))),
        # An empty text is smaller than any other.
        pod_group=max(one.pod_group, other.pod_group),
        queue=max(one.queue, other.queue),
        priority_class=max(one.priority_class, other.priority_class),
        priority=max(priorities, default=None),
        service_account=max(one.service_account, other.service_account),
        labels={
            name: max(one.labels.get(name, ""), other.labels.get(name, ""))
            for name in sorted(one.labels.keys() | other.labels.keys())
        },
    )
