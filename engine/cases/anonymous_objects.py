"""Objects of a cluster with replaced names, for a case that leaves the house. Pure.

A name has one replacement everywhere, also in texts, so an answer from the replaced objects is the answer from the
original ones with the names replaced. A replacement begins with the kind of the object: ``pod-3``, ``node-1``. Names of
objects and containers, images, UIDs (of devices too) and IP addresses are replaced, also in texts that are base64.
Secrets, ConfigMaps, values of
environment variables, commands, and annotations that no scheduler reads are left out. Values of labels stay, unless
they are names.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.snapshot.kinds import flatten
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.json_types import Json

_DROPPED_KINDS: Final = frozenset(("Secret", "ConfigMap"))
_DROPPED_FIELDS: Final = frozenset(
    (
        "managedFields", "env", "envFrom", "command", "args", "data", "stringData", "secret", "configMap", "projected",
        "imagePullSecrets", "podIP", "podIPs", "hostIP", "hostIPs", "addresses", "images", "nodeInfo", "providerID",
        "podCIDR", "podCIDRs", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "generateName",
    )
)  # fmt: skip
_KEPT_FIELDS: Final = frozenset(("apiVersion", "kind", "schedulerName", "phase", "type", "operator", "effect"))
"""Fields whose values are never names of this cluster."""
_READ_DOMAINS: Final = re.compile(
    r"(?:[\w.-]*\.)?(?:hami\.io|nvidia\.com|kueue\.x-k8s\.io|volcano\.sh|scheduling\.[\w.-]+|koordinator\.sh|"
    r"run\.ai|yunikorn\.apache\.org|4paradigm\.com|huawei\.com|iluvatar\.ai|metax-tech\.com|cambricon\.com|hygon\.com|"
    r"mthreads\.com|enflame\.com|kunlunxin\.com|karpenter\.sh)/|pod-group-name$"
)
"""Annotations that schedulers read or write."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_ADDRESS_6: Final = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})(?![\w:])",
    re.IGNORECASE,
)
_BASE64: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/]{16,}={0,2}(?![\w+/=-])")
_NAMING_FIELDS: Final = {
    "nodeName": "node", "nominatedNodeName": "node", "hostname": "host", "subdomain": "host",
    "serviceAccountName": "serviceaccount", "claimName": "persistentvolumeclaim", "volumeName": "persistentvolume",
    "resourceClaimName": "resourceclaim", "resourceClaimTemplateName": "resourceclaimtemplate",
    "storageClassName": "storageclass", "priorityClassName": "priorityclass", "kubernetes.io/hostname": "node",
    "kueue.x-k8s.io/queue-name": "localqueue", "pod-group-name": "podgroup", "job-name": "job",
}  # fmt: skip
"""Fields and labels whose values are names of objects, which may not have been read; by kind."""
_PUBLIC: Final = re.compile(r"(?:kube-|system[:-]|hami-|kai-scheduler|volcano)[\w-]*$|(?:default|main|root)$")
"""Names that every cluster has alike."""
_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9][a-z0-9.-]+$")
_HYPHEN: Final = re.compile("-")
_LEAST: Final = 4
"""Characters of a name that is replaced at the beginning of a longer word too."""
_WORD: Final = re.compile(r"(?P<domain>[\w-]+(?:\.[\w-]+)+/)?(?P<word>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def replace_names(objects: Iterable[Any]) -> list[Json]:
    """Return the objects, lists flattened, with replaced names; Secrets and ConfigMaps are left out."""
    entries = [
        entry for entry in flatten(objects) if isinstance(entry, dict) and entry.get("kind") not in _DROPPED_KINDS
    ]
    table = _NameTable()
    for entry in entries:
        table.add_object(entry)
    return [table.replace(entry) for entry in entries]


class _NameTable:
    """Replacements by name, numbered by kind in the order in which the names were met."""

    def __init__(self) -> None:
        self._replacements: dict[str, str] = {}
        self._images: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def add_object(self, entry: Fields) -> None:
        """Add the names in an object; an event's name begins with that of its object, and needs none."""
        kind = get_text(entry, "kind").lower()
        self._add("namespace", get_text(entry, "metadata", "namespace"))
        if kind == "namespace" or not kind.startswith("event"):
            self._add(kind, get_text(entry, "metadata", "name"))
        for owner in iterate_objects(entry, "metadata", "ownerReferences"):
            self._add(get_text(owner, "kind").lower(), get_text(owner, "name"))
        regarding = get_object(entry, "involvedObject") or get_object(entry, "regarding")
        self._add(get_text(regarding, "kind").lower(), get_text(regarding, "name"))
        self._add_nested(entry)

    def _add_nested(self, fields: Any) -> None:
        """Add the names of containers, nodes, accounts and images at any depth."""
        if isinstance(fields, list):
            for item in fields:
                self._add_nested(item)
        elif isinstance(fields, Mapping):
            self._add("node", get_text(fields, "source", "host"))
            for field, kind in _NAMING_FIELDS.items():
                self._add(kind, get_text(fields, field))
            if image := get_text(fields, "image").strip():
                self._images.setdefault(image, f"image-{len(self._images) + 1}")
                self._add("container", get_text(fields, "name"))
            for child in fields.values():
                self._add_nested(child)

    def _add(self, prefix: str, name: str) -> None:
        if name not in self._replacements and _NAME.match(name) and not _PUBLIC.match(name):
            self._replacements[name] = f"{prefix or 'object'}-{self._count(prefix)}"
            head, dot, _ = name.partition(".")
            if prefix == "node" and dot and _NAME.match(head):
                # People and logs write a node's name also without its domain.
                self._replacements.setdefault(head, self._replacements[name])

    def _count(self, prefix: str) -> int:
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return self._counts[prefix]

    def replace(self, fields: Any) -> Any:
        """Return the fields with replaced names in all texts; keys stay."""
        if isinstance(fields, str):
            return self._replace_text(fields)
        if isinstance(fields, list):
            return [self.replace(item) for item in fields]
        if not isinstance(fields, Mapping):
            return fields
        return {
            name: value if name in _KEPT_FIELDS else self._replace_annotations(value) if name == "annotations"
            else self.replace(value)
            for name, value in fields.items()
            if name not in _DROPPED_FIELDS
        }  # fmt: skip

    def _replace_annotations(self, annotations: Any) -> Any:
        if not isinstance(annotations, Mapping):
            return {}
        return {name: self.replace(value) for name, value in annotations.items() if _READ_DOMAINS.match(name)}

    def _replace_text(self, text: str) -> str:
        if text in self._images:
            return self._images[text]
        for image, replacement in self._images.items():
            # An image without a registry or a tag may be a word: only in quotes it is surely the image.
            if image in text:
                is_path = "/" in image or ":" in image
                text = text.replace(*((image, replacement) if is_path else (f'"{image}"', f'"{replacement}"')))
        text = _UUID.sub(lambda match: self._replace_uuid(match[0].lower()), text)
        text = _ADDRESS.sub(lambda match: self._replace_address(match[0]), text)
        text = _ADDRESS_6.sub(lambda match: self._replace_address(match[0].lower()), text)
        text = _BASE64.sub(lambda match: self._replace_encoded(match[0]), text)
        return _WORD.sub(self._replace_word, text)

    def _replace_encoded(self, text: str) -> str:
        """Replace the names within a text that is base64; other words of such letters stay."""
        try:
            decoded = base64.b64decode(text, validate=True).decode()
        except ValueError:
            return text
        replaced = self._replace_text(decoded) if decoded.isprintable() else decoded
        return text if replaced == decoded else base64.b64encode(replaced.encode()).decode()

    def _replace_uuid(self, uuid: str) -> str:
        if uuid not in self._replacements:
            self._replacements[uuid] = f"00000000-0000-4000-8000-{self._count('uuid'):012}"
        return self._replacements[uuid]

    def _replace_address(self, address: str) -> str:
        if address not in self._replacements:
            number = self._count("address")
            octets = f"{number // 65536 % 256}.{number // 256 % 256}.{number % 256}"
            self._replacements[address] = f"fd00::{number:x}" if ":" in address else f"10.{octets}"
        return self._replacements[address]

    def _replace_word(self, match: re.Match[str]) -> str:
        """Replace a word that is a name, or of which a part before a dot is one; a resource of a domain is no name."""
        domain, word = match["domain"] or "", match["word"]
        if domain:
            return match[0]
        if word in self._replacements:
            return self._replacements[word]
        head, dot, tail = word.partition(".")
        if dot and head in self._replacements:
            return f"{self._replacements[head]}{dot}{tail}"
        # Pods that are gone are called after what made them.
        beginnings = (word[: hyphen.start()] for hyphen in reversed(list(_HYPHEN.finditer(word))))
        beginning = next((part for part in beginnings if len(part) >= _LEAST and part in self._replacements), "")
        return f"{self._replacements[beginning]}{word[len(beginning) :]}" if beginning else word
