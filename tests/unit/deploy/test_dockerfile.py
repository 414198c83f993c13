"""Promises of the Dockerfile to Kubernetes and to ``docker run``, read without Docker."""

import json
import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import yaml

from api.settings import Settings
from cli.command import COMMANDS
from runtime.settings.variables import PREFIX

ROOT = Path(__file__).parents[3]
UV = "deploy/image/uv.txt"


def read_last_stage() -> list[tuple[str, str]]:
    """Read the instructions of the stage that becomes the image, each as its name and its arguments."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [(words[0].upper(), words[1]) for words in lines]
    starts = [number for number, (name, _) in enumerate(instructions) if name == "FROM"]
    return instructions[starts[-1] :]


def list_arguments(name: str) -> list[str]:
    return [arguments for instruction, arguments in read_last_stage() if instruction == name]


def read_environment() -> dict[str, str]:
    """Read the variables that the image sets."""
    return dict(pair.split("=", 1) for arguments in list_arguments("ENV") for pair in arguments.split())


def test_the_user_is_a_number_that_a_kubelet_can_distinguish_from_root() -> None:
    user, group = re.fullmatch(r"(\d+):(\d+)", list_arguments("USER")[-1]).groups()  # type: ignore[union-attr]
    assert int(user) > 0
    assert int(group) > 0


def test_every_command_of_the_project_is_an_argument_of_the_image() -> None:
    assert json.loads(list_arguments("ENTRYPOINT")[-1]) == ["schedulerlog"]
    assert json.loads(list_arguments("CMD")[-1]) == ["--help"]


def test_the_api_listens_where_the_outside_reaches_it() -> None:
    (listening,) = (name for name in read_environment() if name.startswith(f"{PREFIX}API_"))
    assert listening.removeprefix(PREFIX).lower() in Settings.model_fields
    assert ip_address(read_environment()[listening].partition(":")[0]).is_unspecified


def test_the_base_is_named_by_its_content_and_compose_takes_the_same() -> None:
    [base] = re.findall(r"^ARG PYTHON_IMAGE=(.+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert re.fullmatch(r"python:3\.11-slim@sha256:[0-9a-f]{64}", base)
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert compose["x-service"]["build"]["args"]["PYTHON_IMAGE"] == f"${{SCHEDULERLOG_PYTHON_IMAGE:-{base}}}"


def test_n16_pip_installs_only_what_a_hash_names() -> None:
    """The installer installs everything else: who replaces it replaces all."""
    for file in ("Dockerfile", "Makefile"):
        text = (ROOT / file).read_text("utf-8").replace("\\\n", " ").replace("$(UV_REQUIREMENTS)", UV)
        installs = re.findall(r"\bpip install (?:(?!&&|;|\n).)*", text)
        assert installs, file
        for install in installs:
            assert "--no-index" in install or f"--require-hashes -r {UV}" in install, install
    [requirement, *hashes] = re.findall(r"^uv==[\d.]+|--hash=sha256:[0-9a-f]{64}(?= |$)", (ROOT / UV).read_text(), re.M)
    assert len(hashes) >= 3, requirement


def test_the_labels_are_those_of_the_open_container_initiative() -> None:
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", list_arguments("LABEL")[-1]))
    assert labels == {"title", "description", "source", "licenses", "version", "revision"}


def test_every_copied_file_is_in_the_repository() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert copied
    assert {name for names in copied for name in names.split() if not (ROOT / name).exists()} == set()


def test_compose_and_the_manifests_run_only_commands_that_the_image_has() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"].values()
    commands = [service["command"] for service in services if "command" in service]
    for path in (ROOT / "deploy" / "kustomize").rglob("*.yaml"):
        commands += [
            arguments
            for document in yaml.safe_load_all(path.read_text("utf-8"))
            for arguments in iterate_arguments(document)
        ]
    assert len(commands) > 15
    assert {command[0] for command in commands} <= COMMANDS.keys()


def iterate_arguments(document: object) -> Iterator[list[str]]:
    """Iterate over the arguments of this project's containers in a manifest."""
    if isinstance(document, dict):
        if str(document.get("image", "")).startswith("ghcr.io/schedulerlog/") and "args" in document:
            yield document["args"]
        for value in document.values():
            yield from iterate_arguments(value)
    elif isinstance(document, list):
        for value in document:
            yield from iterate_arguments(value)
