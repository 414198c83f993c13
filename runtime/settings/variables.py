"""Names of environment variables that several processes read."""

from typing import Final

PREFIX: Final = "SCHEDULERLOG_"
KAFKA: Final = f"{PREFIX}KAFKA_BOOTSTRAP_SERVERS"
CLUSTER_NAME: Final = f"{PREFIX}CLUSTER_NAME"
POD_LABELS: Final = f"{PREFIX}POD_LABELS"
METRICS_ADDRESS: Final = f"{PREFIX}METRICS_ADDRESS"


def derive_variable(field: str) -> str:
    """Derive the variable of a field of a settings model."""
    return f"{PREFIX}{field.upper()}"
