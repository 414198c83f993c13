"""Merging of several sources' descriptions of one pod. Pure."""

from schemas.events import PodDescription


def merge_descriptions(one_description: PodDescription | None, other: PodDescription | None) -> PodDescription | None:
    """Merge the descriptions of two sources, each field from the one that says more of it. Order and repetition do not
    matter."""
    if one_description is None or other is None or one_description == other:
        return one_description or other
    created = [description.created_at for description in (one_description, other) if description.created_at]
    priorities = [description.priority for description in (one_description, other) if description.priority is not None]
    return PodDescription(
        created_at=min(created, default=None),
        # The longer chain reaches further up; a source may name only the pod's direct controller.
        owners=max(one_description.owners, other.owners, key=lambda owners: (len(owners), repr(owners))),
        # An empty text is smaller than any other.
        pod_group=max(one_description.pod_group, other.pod_group),
        queue=max(one_description.queue, other.queue),
        priority_class=max(one_description.priority_class, other.priority_class),
        priority=max(priorities, default=None),
        service_account=max(one_description.service_account, other.service_account),
        labels={
            name: max(one_description.labels.get(name, ""), other.labels.get(name, ""))
            for name in sorted(one_description.labels.keys() | other.labels.keys())
        },
    )
