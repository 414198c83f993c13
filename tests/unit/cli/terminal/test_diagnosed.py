"""Facts that are not known, each cause once."""

from cli.terminal.diagnosed import group_by_cause

OUTSIDE = "The API does not run in the cluster, and no kubeconfig names it."


def test_facts_with_one_cause_are_one_line() -> None:
    texts = [
        f"Not known: the quotas. {OUTSIDE}",
        f"Not known: the claims. {OUTSIDE}",
        "Not known: the attempt. OpenSearch does not answer.",
        f"Not known: the quotas. {OUTSIDE}",
        "A sentence of another form",
    ]
    assert group_by_cause(texts) == [
        f"Not known: the quotas; the claims. {OUTSIDE}",
        "Not known: the attempt. OpenSearch does not answer.",
        "A sentence of another form",
    ]
