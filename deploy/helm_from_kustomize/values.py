"""The values of the chart: what each is for, its default and its form."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from deploy.helm_from_kustomize.value_types import (
    Address,
    ChartSection,
    GatewayValues,
    IngressPathValues,
    Name,
    OptionalName,
    Process,
    ProxyValues,
    Quantity,
    Replicated,
)
from runtime.settings.variables import read_variable_names

_BROKER: Final = r"(\[[0-9a-fA-F:.]+\]|[^\s,:/]+):[0-9]{1,5}"
_VARIABLES: Final = read_variable_names()
SETTINGS: Final = tuple(sorted(name for name in _VARIABLES if f"{name}_FILE" not in _VARIABLES))
"""Settings that may stand in a ConfigMap: a secret has a second one, which names its file."""


class ImageValues(ChartSection):
    repository: Annotated[str, Field(pattern=r"^[^\s:@]*(:[0-9]+/[^\s:@]+)?$")] = ""
    """Name of the image in your registry, such as registry.example.com/gpu/schedulerlog. Required: none is published;
    `make push PREFIX=registry.example.com/gpu` builds and pushes it."""
    tag: Annotated[str, Field(pattern=r"^[\w.-]*$")] = ""
    """Default: the chart's appVersion."""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    """Digest of the image, used in place of the tag."""
    pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = ""
    """Default: Kubernetes' own."""
    pull_secrets: list[Name] = []
    """Names of Secrets of the registry; every account gives them to its pods."""


class AmountsValues(ChartSection):
    cpu: Quantity | float = ""
    memory: Quantity | float = ""
    ephemeral_storage: Annotated[Quantity | float, Field(alias="ephemeral-storage")] = ""


class ResourcesValues(ChartSection):
    requests: AmountsValues = AmountsValues()
    limits: AmountsValues = AmountsValues()


class SaslValues(ChartSection):
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    username: str = "schedulerlog"
    """Its password is the key `password` of the Secret."""


class StrimziValues(ChartSection):
    enabled: bool = False
    """Topics and users are made by Strimzi's operator (KafkaTopic, KafkaUser), a certificate for each process."""
    cluster: Name = "kafka"
    """Name of the Kafka, from which its label and the Secret of its authority follow."""


class KafkaValues(ChartSection):
    bootstrap_servers: Annotated[str, Field(pattern=rf"^({_BROKER}(,{_BROKER})*)?$")] = ""
    """HOST:PORT of brokers, with commas between them. Required unless `stores` or `kafka.strimzi` bring one."""
    security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    """Protocol of the connection: over TLS (ssl), with a name and proof (sasl), both or neither."""
    existing_secret: Name = "schedulerlog-kafka"
    """Secret with `ca.crt` of the brokers, and `tls.crt` and `tls.key` (ssl) or `password` (sasl)."""
    private_authority: bool = True
    """With TLS: trust `ca.crt` of the Secret; false: the system's authorities."""
    client_certificate: bool = True
    """With ssl: show the certificate of the Secret."""
    sasl: SaslValues = SaslValues()
    replication_factor: Annotated[int, Field(ge=0, le=32767)] = 0
    """Replicas of each topic that `provision` makes. 0: three with `highAvailability`, else Kafka's own default."""
    partitions: Annotated[int, Field(ge=0, le=1000)] = 0
    """Partitions of topics that are made. 0: three where everything is one process, else twelve."""
    strimzi: StrimziValues = StrimziValues()


class RolesValues(ChartSection):
    enabled: bool = False
    """A user and a role of OpenSearch's security plugin for each kind of process; a Job makes the roles."""
    administrator_secret: Name = "schedulerlog-opensearch-administrator"
    """Secret with `username` and `password` of who may make roles."""
    writer_secret: Name = "schedulerlog-opensearch-writer"
    """Secrets with `password` of the users schedulerlog-writer, schedulerlog-reader and schedulerlog-provisioner."""
    reader_secret: Name = "schedulerlog-opensearch-reader"
    provisioner_secret: Name = "schedulerlog-opensearch-provisioner"


class OpenSearchValues(ChartSection):
    url: Annotated[str, Field(pattern=r"^(https?://[^\s,]+(,https?://[^\s,]+)*)?$")] = ""
    """URL of OpenSearch, or several with commas between them. Required unless `stores` bring one."""
    authentication: Literal["none", "password"] = "none"
    """`password`: as `username`, with the Secret's `password`."""
    username: str = "schedulerlog"
    existing_secret: Name = "schedulerlog-opensearch"
    """Secret with `ca.crt`, and `password`."""
    private_authority: bool = True
    """With https: trust `ca.crt` of the Secret; false: the system's authorities."""
    replicas: Annotated[int, Field(ge=-1, le=100)] = -1
    """Replicas of each index. -1: one with `highAvailability`, else the default of the templates."""
    roles: RolesValues = RolesValues()
    state_management: bool = False
    """Index state management deletes old indices; needs `opensearch.roles`."""


class StoreValues(ChartSection):
    image: str
    storage: Quantity = "10Gi"
    storage_class: OptionalName = ""
    """Default: the cluster's."""


class StoresValues(ChartSection):
    enabled: bool = True
    """A Kafka and an OpenSearch of one node each, without TLS, in the namespace of the release."""
    kafka: StoreValues = StoreValues(image="apache/kafka:4.3.1")
    opensearch: StoreValues = StoreValues(image="opensearchproject/opensearch:3.8.0")


class KubeEventsValues(ChartSection):
    enabled: bool = True
    """Read pods, nodes and events: attempts of every scheduler."""
    objects: bool = True
    """Judge refused pods with volumes and device claims too, which needs the right to list those."""
    workloads: bool = True
    """List workloads without pods among what waits, which needs the right to list workloads and queues."""


class HamiLogValues(ChartSection):
    enabled: bool = False
    """Read the log of HAMi's scheduler: why each device was refused."""
    namespace: Name = "kube-system"
    pods: str = "hami-scheduler-*"
    container: str = "vgpu-scheduler-extender"


class KaiLogValues(ChartSection):
    enabled: bool = False
    """Read the log of KAI-Scheduler."""
    namespace: Name = "kai-scheduler"
    pods: str = "kai-scheduler-default-*"


class RawLogsValues(ChartSection):
    enabled: bool = False
    """Read the logs that Fluent Bit, Vector or OpenTelemetry ship to a topic."""


class SourcesValues(ChartSection):
    kube_events: KubeEventsValues = KubeEventsValues()
    hami: HamiLogValues = HamiLogValues()
    kai: KaiLogValues = KaiLogValues()
    raw_logs: RawLogsValues = RawLogsValues()


class KubeSchedulerValues(ChartSection):
    image: str = "registry.k8s.io/kube-scheduler"
    tag: str = ""
    """Default: the version of the cluster."""


class SchedulerValues(ChartSection):
    enabled: bool = False
    """A scheduler of the name schedulerlog next to yours, with a kube-scheduler of its own, on nodes that have the
    label below: on one node two schedulers of devices could give one away twice."""
    node_label_selector: str = "schedulerlog.io/scheduler=schedulerlog"
    kube_scheduler: KubeSchedulerValues = KubeSchedulerValues()
    spool: Quantity = "5Gi"
    """Volume of decisions that Kafka does not have yet."""
    storage_class: OptionalName = ""
    """Default: the cluster's."""


class EventsValues(ChartSection):
    enabled: bool = True
    """Write decisions as events of their pods (`kubectl describe`)."""
    schedulers: Annotated[list[str], Field(min_length=1)] = ["schedulerlog"]
    """Schedulers whose decisions become events: those that write none themselves."""


class PortValues(ChartSection):
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    node_port: Annotated[int, Field(ge=0, le=65535)] = 31994
    """With NodePort: https://NODE:31994, as in HAMi's proposal; 0: Kubernetes chooses one."""
    annotations: dict[str, str] = {}


class IssuerValues(ChartSection):
    name: OptionalName = ""
    """An issuer of yours. Default: an authority of the release's own."""
    kind: Literal["Issuer", "ClusterIssuer"] = "ClusterIssuer"


class TlsValues(ChartSection):
    source: Literal["job", "certManager", "secret"] = "job"
    """Maker of the API's certificate: a Job with an authority of its own, cert-manager, or you."""
    secret: Name = "schedulerlog-api-tls"
    """Secret with `tls.crt`, `tls.key` and `ca.crt`."""
    issuer: IssuerValues = IssuerValues()


class ApiValues(ChartSection):
    service: PortValues = PortValues()
    tls: TlsValues = TlsValues()
    ingress: IngressPathValues = IngressPathValues()
    gateway: GatewayValues = GatewayValues()
    proxy: ProxyValues = ProxyValues()
    aggregated: bool = False
    """Answers as a part of Kubernetes' own API (`kubectl get --raw /apis/schedulerlog.io/…`). With two replicas."""


class DiagnosisValues(ChartSection):
    nodes: bool = False
    """Rights of the API to judge waiting pods on the cluster's objects; each other one is that of a queue system."""
    owners: bool = False
    kueue: bool = False
    volcano: bool = False
    kai: bool = False
    koordinator: bool = False
    pod_groups: bool = False


class AlertmanagerValues(ChartSection):
    enabled: bool = False
    """Post alerts to an Alertmanager."""
    urls: Annotated[list[Address], Field(min_length=1)] = ["http://alertmanager-operated.monitoring:9093"]
    """Every peer of it."""


class NetworkPoliciesValues(ChartSection):
    enabled: bool = False
    """Let nothing in or out but what is needed."""
    prometheus: list[dict[str, Any]] = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    """Peers (NetworkPolicyPeer) that scrape metrics."""
    kafka: list[dict[str, Any]] = [
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kafka"}}},
    ]
    """Peers that are Kafka, on ports 9092 to 9094."""
    opensearch: list[dict[str, Any]] = [
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "opensearch"}}},
    ]
    """Peers that are OpenSearch."""
    opensearch_port: Annotated[int, Field(ge=1, le=65535)] = 9200


class PrometheusValues(ChartSection):
    enabled: bool = False
    """Scrape every process, by the Prometheus operator."""
    labels: dict[str, str] = {}
    """Labels by which your Prometheus selects ServiceMonitors and PrometheusRules, such as `release`."""
    interval: Annotated[str, Field(pattern=r"^[0-9]+(s|m)$")] = "30s"
    rules: bool = True
    """Alerts, and objectives with burn rates."""
    runbooks: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    """Address at which your people read docs/runbooks.md, for the link of each alert. Default: no links."""


class KedaValues(ChartSection):
    enabled: bool = False
    """KEDA sets the number of workers and index writers by their lag."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 12
    """One for each partition at most."""


class DashboardsValues(ChartSection):
    enabled: bool = False
    """A Job installs index patterns, searches and a dashboard into OpenSearch Dashboards."""
    url: Address = "http://opensearch-dashboards:5601"
    api_url: Address = "https://schedulerlog.example:31994"
    """The API as the browsers of people reach it."""
    existing_secret: Name = "schedulerlog-dashboards"
    """Secret with `username` and `password`, where Dashboards asks for them."""


class SwitchValues(ChartSection):
    enabled: bool = False


class PodsValues(ChartSection):
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    annotations: dict[str, str] = {}


class Values(ChartSection):
    processes: Literal["one", "separate", "sources"] = "one"
    """`one`: everything in one process, for up to 100 nodes. `separate`: a workload for each. `sources`: only what
    reads this cluster, for a fleet whose pipeline and API run elsewhere."""
    cluster_name: Annotated[str, Field(min_length=1)] = "default"
    """Name of this cluster in every record."""
    size: Literal["small", "medium", "large"] = "medium"
    """Requests and limits of all processes: up to 100 nodes, up to 1,000, more."""
    resources: dict[Process, ResourcesValues] = {}
    """Requests and limits of single processes, over those of `size`: `api: {limits: {memory: 2Gi}}`."""
    high_availability: bool = False
    """Three workers, index writers and APIs, two of placements and alerts; disruption budgets, spread over nodes."""
    replicas: dict[Replicated, Annotated[int, Field(ge=0)]] = {}
    """Pods of single processes, over those of `highAvailability` and the two of each source."""
    image: ImageValues = ImageValues()
    kafka: KafkaValues = KafkaValues()
    opensearch: OpenSearchValues = OpenSearchValues()
    stores: StoresValues = StoresValues()
    sources: SourcesValues = SourcesValues()
    scheduler: SchedulerValues = SchedulerValues()
    events: EventsValues = EventsValues()
    api: ApiValues = ApiValues()
    diagnosis: DiagnosisValues = DiagnosisValues()
    alertmanager: AlertmanagerValues = AlertmanagerValues()
    network_policies: NetworkPoliciesValues = NetworkPoliciesValues()
    prometheus: PrometheusValues = PrometheusValues()
    grafana: SwitchValues = SwitchValues()
    """Two dashboards as ConfigMaps with the label of Grafana's sidecar."""
    keda: KedaValues = KedaValues()
    dashboards: DashboardsValues = DashboardsValues()
    mcp: SwitchValues = SwitchValues()
    notify: SwitchValues = SwitchValues()
    """Messages to people who annotate their workload; the Secret schedulerlog-notify-targets has the targets."""
    event_reporters: SwitchValues = SwitchValues()
    """An admission policy: only the control plane reports under the name of a scheduler or controller."""
    device_annotations: SwitchValues = SwitchValues()
    """An admission policy: only schedulers and device plugins write which devices a pod holds."""
    settings: dict[Literal[SETTINGS], str | bool | int] = {}  # type: ignore[valid-type]
    """Any other setting of docs/settings.md, such as SCHEDULERLOG_INDEX_LINGER: 2s. Secrets are files of Secrets."""
    pods: PodsValues = PodsValues()
