"""A message as text, as mail and as a CloudEvent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from hashlib import sha256
from typing import Any, Final, Literal

from engine.summaries.named_pods import hide_other_pods
from pipeline.notify.targets import MailTarget
from pipeline.notify.waiting_workloads import SubscribedWorkload
from schemas.codec.records import format_rfc3339
from schemas.events.base import TYPE_PREFIX

State = Literal["waits", "started"]
_HEADS: Final[Mapping[tuple[State, str], str]] = {
    ("waits", "en"): "{key} waits",
    ("waits", "zh"): "{key} 正在等待",
    ("started", "en"): "{key} started",
    ("started", "zh"): "{key} 已启动",
}


@dataclass(frozen=True, slots=True)
class Message:
    key: SubscribedWorkload
    state: State
    code: str
    """Code of the obstacle; empty for a workload that started."""
    pod: str
    pods: int
    """Number of waiting pods."""
    headline: Mapping[str, str]
    """First line of the pod's answer by language: the sentence, with the cheapest proved change."""
    link: str
    sent_at: datetime
    id: str
    """Equal for a message that is sent again after a crash."""

    def write_text(self, language: str) -> str:
        """Write the message for people, without pods of other namespaces."""
        head, headline = self.write_head(language), self.headline.get(language, "")
        lines = [f"{head}: {hide_other_pods(headline, self.key.namespace)}" if headline else head, self.link]
        return "\n".join(filter(None, lines))

    def write_head(self, language: str) -> str:
        return _HEADS[self.state, language].format(key=self.key)


def derive_id(key: SubscribedWorkload, target: str, since: str, number: int) -> str:
    """Derive the id of a workload's message: its number since the wait began."""
    return sha256(f"{key}|{target}|{since}|{number}".encode()).hexdigest()[:32]


def build_mail(message: Message, target: MailTarget) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = message.write_head(target.language)
    mail["From"], mail["To"] = target.sender, ", ".join(target.to)
    mail["Date"], mail["Message-ID"] = message.sent_at, f"<{message.id}@schedulerlog>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.write_text(target.language) + "\n")
    return mail


def build_cloud_event(message: Message, cluster: str) -> dict[str, Any]:
    texts = {language: message.write_text(language) for language in ("en", "zh")}
    return {
        "specversion": "1.0",
        "id": message.id,
        "source": f"/schedulerlog/clusters/{cluster}",
        "type": f"{TYPE_PREFIX}workload.{message.state}.v1",
        "subject": str(message.key),
        "time": format_rfc3339(message.sent_at),
        "datacontenttype": "application/json",
        "data": {
            "namespace": message.key.namespace,
            "workload": message.key.workload,
            "pod": message.pod,
            "state": message.state,
            "obstacle": message.code,
            "waiting_pods": message.pods,
            "text": texts,
            "link": message.link,
        },
    }
