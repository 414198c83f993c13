"""What to check where nothing is known."""

from api.errors import NotFoundError


def unknown_pod(namespace: str, name: str) -> NotFoundError:
    pod = f"kubectl -n {namespace} get pod {name}"
    return NotFoundError(
        f"no scheduling attempt of pod {namespace}/{name} is known",
        f"Does the pod exist: `{pod}`. Is it this scheduler's: `{pod} -o jsonpath='{{.spec.schedulerName}}'`. Does it "
        "ask for devices (only such pods are recorded): "
        f"`{pod} -o jsonpath='{{.spec.containers[*].resources.limits}}'`. "
        "Do the scheduler and the worker run: ask the /readyz of each; `python -m pipeline worker` starts a worker.",
    )
