"""Pods of the installation that do not start: what they wait for, and missing Secrets and settings. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from cli.doctor.findings import Fault
from runtime.settings.variables import warn_of_unknown
from schemas.json_types import JsonView

_API_TLS: Final = "schedulerlog-api-tls"
_MAY_BE_MISSING: Final = frozenset({"SCHEDULERLOG_NOTIFY_TARGETS"})
"""Variables that name a file without which `schedulerlog all` leaves a part out."""
_IMAGE: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_NO_IMAGE: Final = (
    "Is the image in that registry, under that tag, and may the nodes pull it? `images` of your overlay names another "
    "(docs/deploy.md)."
)


def check_pods(pods: Sequence[JsonView]) -> Iterator[Fault]:
    """Check which pods wait; one finding for each cause, because a wrong image keeps every pod."""
    causes: dict[str, tuple[str, list[str]]] = {}
    for pod in pods:
        for problem, remedy in _explain_wait(pod):
            causes.setdefault(problem, (remedy, []))[1].append(pod["metadata"]["name"])
    for problem, (remedy, names) in causes.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Fault("kubernetes", f"pod {names[0]}{others}", problem, remedy)


def _explain_wait(pod: JsonView) -> Iterator[tuple[str, str]]:
    """Explain what the pod waits for: each problem and its remedy."""
    status, name, namespace = pod.get("status", {}), pod["metadata"]["name"], pod["metadata"].get("namespace", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            problem = f"is on no node: {condition.get('message') or condition.get('reason', 'no reason is given')}"
            yield problem, "Make room on a node, or correct what the pod asks for by a patch in your overlay."
    for container in status.get("containerStatuses") or ():
        waiting = container.get("state", {}).get("waiting") or {}
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _IMAGE:
            yield f"can't get its image {container['image']} ({reason})", _NO_IMAGE
        elif reason == "CrashLoopBackOff":
            ended = container.get("lastState", {}).get("terminated") or {}
            why = f"exit code {ended.get('exitCode', 'unknown')}, {ended.get('reason') or 'no reason'}"
            log = f"kubectl logs -n {namespace} {name} -c {container['name']} --previous"
            yield f"ends again and again ({why})", f"Its last lines say why: `{log}`."
        elif reason.startswith("CreateContainer"):
            yield f"can't be started: {message or reason}", "Make what it names, or correct the name in your overlay."


Wanted = Mapping[str, Mapping[str, str]]
"""By Secret: its keys that pods need, and a pod that does; the key "" is the Secret itself."""


Keys = Mapping[str, Collection[str]]
"""By Secret that is there: its keys."""


def list_optional_secrets(pods: Iterable[JsonView], settings: Mapping[str, Mapping[str, str]]) -> list[str]:
    """List the optional Secrets that could have a file which a setting names: one of them has to."""
    candidates = (
        candidate
        for pod in pods
        for candidates in _iterate_candidates(pod["spec"], list(_iterate_files(pod["spec"], settings)))
        for candidate in candidates
    )
    return sorted({name for name, _ in candidates})


def collect_secrets(pods: Iterable[JsonView], settings: Mapping[str, Mapping[str, str]], optional: Keys) -> Wanted:
    """Collect the Secrets of the pods' volumes and variables. ``settings``: data of ConfigMaps, which name files.
    ``optional``: the Secrets that are there of those that need not be."""
    secrets: dict[str, dict[str, str]] = {}
    for pod in pods:
        files = list(_iterate_files(pod["spec"], settings))
        wanted = (*_iterate_secrets(pod["spec"], files), *_iterate_chosen(pod["spec"], files, optional))
        for secret, key in wanted:
            secrets.setdefault(secret, {}).setdefault(key, pod["metadata"]["name"])
    return secrets


def _iterate_chosen(spec: JsonView, files: Sequence[str], optional: Keys) -> Iterator[tuple[str, str]]:
    """Iterate over the optional Secrets that have files which settings name; of files that none has, over the first
    that could."""
    for candidates in _iterate_candidates(spec, files):
        has_file = ((name, key) for name, key in candidates if key in optional.get(name, ()))
        name, key = next(has_file, candidates[0])
        yield from ((name, ""), (name, key))


def _iterate_candidates(spec: JsonView, files: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Iterate over the files that settings name: the optional Secrets that could have each, with the key."""
    for volume in spec.get("volumes") or ():
        sources = [source for source in _iterate_sources(volume) if source.get("optional")]
        folders = _list_folders(spec, volume)
        for path in files:
            folder, _, file = path.rpartition("/")
            candidates = [(_get_name(source), key) for source in sources if (key := _get_key(source, file))]
            if folder in folders and candidates:
                yield candidates


def _get_key(source: JsonView, file: str) -> str:
    """Return the key that becomes the file; empty if none does."""
    items = source.get("items")
    return file if items is None else next((str(item["key"]) for item in items if item.get("path") == file), "")


def _get_name(source: JsonView) -> str:
    return str(source.get("secretName") or source["name"])


def _list_folders(spec: JsonView, volume: JsonView) -> set[str]:
    return {
        mount["mountPath"]
        for container in spec["containers"]
        for mount in container.get("volumeMounts") or ()
        if mount["name"] == volume["name"]
    }


def _iterate_secrets(spec: JsonView, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    for volume in spec.get("volumes") or ():
        mounted = _list_folders(spec, volume)
        for source in _iterate_sources(volume):
            if source.get("optional"):
                continue
            name = _get_name(source)
            yield name, ""
            if items := source.get("items"):
                yield from ((name, item["key"]) for item in items)
            elif "secret" in volume:
                # The whole Secret: its keys are the files that the settings and arguments name.
                yield from ((name, file.rpartition("/")[2]) for file in files if file.rpartition("/")[0] in mounted)
    for container in spec["containers"]:
        for variable in container.get("env") or ():
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference and not reference.get("optional"):
                yield from ((reference["name"], ""), (reference["name"], reference["key"]))


def _iterate_sources(volume: JsonView) -> Iterator[JsonView]:
    if "secret" in volume:
        yield volume["secret"]
    yield from (source["secret"] for source in volume.get("projected", {}).get("sources") or () if "secret" in source)


def _iterate_files(spec: JsonView, settings: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for container in spec["containers"]:
        yield from (word.partition("=")[2] for word in container.get("args") or () if "=/" in word)
        for source in container.get("envFrom") or ():
            name = source.get("configMapRef", {}).get("name", "")
            yield from (text for text in settings.get(name, {}).values() if text.startswith("/"))
        variables = [entry for entry in container.get("env") or () if entry["name"] not in _MAY_BE_MISSING]
        yield from (entry["value"] for entry in variables if entry.get("value", "").startswith("/"))


def check_secret(name: str, keys: Mapping[str, str], has: Iterable[str] | None) -> Iterator[Fault]:
    """Check that a Secret has the keys (see ``Wanted``). ``has``: its keys; None if the Secret is missing."""
    subject = f"Secret {name}"
    if has is None:
        remedy = (
            "The Job schedulerlog-certificate makes it, or cert-manager, or you before the first `apply`."
            if name == _API_TLS
            else "Make it: docs/deploy.md lists the keys of each Secret."
        )
        yield Fault("kubernetes", subject, f"is missing; {next(iter(keys.values()))} waits for it", remedy)
    elif missing := sorted({*keys} - {"", *has}):
        problem = f"has no {', '.join(missing)}, but {', '.join(sorted(has)) or 'nothing'}"
        yield Fault("kubernetes", subject, problem, "Make it with these keys: they are the names of the files.")


def list_config_maps(pods: Iterable[JsonView]) -> set[str]:
    """List the ConfigMaps that give pods their variables."""
    return {
        source["configMapRef"]["name"]
        for pod in pods
        for container in pod["spec"]["containers"]
        for source in container.get("envFrom") or ()
        if "configMapRef" in source and not source["configMapRef"].get("optional")
    }


def check_config_maps(used: Iterable[str], there: Mapping[str, Mapping[str, str]]) -> Iterator[Fault]:
    """Check the ConfigMaps that give pods their variables. ``there``: the data of the existing ones, by name."""
    for name in sorted(used):
        if name not in there:
            yield Fault("kubernetes", f"ConfigMap {name}", "is missing", "Apply your overlay again, whole.")
        elif words := warn_of_unknown(there[name]):
            remedy = "Correct the name in your overlay; docs/settings.md has all."
            yield Fault("kubernetes", f"ConfigMap {name}", words, remedy)


def check_deployments(deployments: Iterable[JsonView]) -> Iterator[Fault]:
    """Check for Deployments whose pods the API server refuses."""
    for deployment in deployments:
        for condition in deployment.get("status", {}).get("conditions") or ():
            if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
                subject = f"Deployment {deployment['metadata']['name']}"
                problem = f"has no pod: {condition.get('message', '')}"
                yield Fault("kubernetes", subject, problem, "Correct what the API server refuses by a patch.")
