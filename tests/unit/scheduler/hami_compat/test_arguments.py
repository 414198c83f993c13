"""A Deployment of HAMi's scheduler keeps its arguments."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from runtime.errors import SettingError
from scheduler.__main__ import app
from scheduler.hami_compat.arguments import translate
from tests.support.builders.kube_objects import a_node

SWITCHES = {"--leader-elect": "--no-leader-elect"}

# As HAMi's chart v2.10 writes them (charts/hami/templates/scheduler/deployment.yaml), with its default values, the
# legacy metrics, both vendors, and the `-v=4` of `extraArgs`.
CHART = [
    "--http_bind=0.0.0.0:443", "--cert_file=/tls/tls.crt", "--key_file=/tls/tls.key", "--scheduler-name=hami-scheduler",
    "--metrics-bind-address=:9395", "--node-scheduler-policy=binpack", "--gpu-scheduler-policy=spread",
    "--force-overwrite-default-scheduler=true", "--device-config-file=/device-config.yaml", "--leader-elect=true",
    "--leader-elect-resource-name=hami-scheduler", "--leader-elect-resource-namespace=kube-system",
    "--enable-ascend=true", "--enable-iluvatar=true", "--node-label-selector=gpu=on,zone=a", "--legacy-metrics=true",
    "-v=4",
]  # fmt: skip


def test_the_charts_arguments_mean_here_what_they_mean_there() -> None:
    words, notes = translate(CHART, SWITCHES)
    assert words == [
        "--http_bind=0.0.0.0:443", "--cert_file=/tls/tls.crt", "--key_file=/tls/tls.key", "--name=hami-scheduler",
        "--metrics-bind-address=0.0.0.0:9395", "--node-policy=binpack", "--device-policy=spread",
        "--force-overwrite-default-scheduler=true", "--device-config-file=/device-config.yaml", "--leader-elect",
        "--leader-elect-with-kube-scheduler", "--leader-elect-resource-name=hami-scheduler",
        "--leader-elect-resource-namespace=kube-system", "--node-label-selector=gpu=on,zone=a", "-v=4",
    ]  # fmt: skip
    assert [note.partition(" ")[0] for note in notes] == [
        "--leader-elect:", "--enable-ascend", "--enable-iluvatar", "--legacy-metrics",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("--leader-elect=true", "--leader-elect"),
        ("--leader-elect=T", "--leader-elect"),
        ("--leader-elect", "--leader-elect"),
        ("--leader-elect=0", "--no-leader-elect"),
        ("--profiling=true", ""),
        ("--scheduler-name hami", "--name hami"),
        ("--kube-timeout=5", "--kube-timeout=5s"),
        ("--kube-timeout=10s", "--kube-timeout=10s"),
        ("--kube-timeout=0", ""),
        ("--cert_file= --key_file=", ""),
        ("--metrics-bind-address=127.0.0.1:9395", "--metrics-bind-address=127.0.0.1:9395"),
        ("--stderrthreshold 2 --logtostderr=true --name x", "--name x"),
        ("--name=a --name=b=c", "--name=a --name=b=c"),
    ],
)
def test_each_form_is_read_as_go_reads_it(words: str, ours: str) -> None:
    assert translate(words.split(), SWITCHES).words == ours.split()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("--leader-elect=yes", "--leader-elect: 'yes' is neither true nor false"),
        ("--dcu-name=x", "--dcu-name: write the resource's name into the device configuration (--device-config-file)"),
        ("--metax-vcore", "--metax-vcore: write the resource's name into the device configuration"),
        ("--vmodule=score=5", "--vmodule: there is one level for all lines, write -v LEVEL"),
        ("--log_file=/var/log/x", "--log_file: the log goes to standard error, redirect it"),
        ("--sgpu-topology-aware=true", "--sgpu-topology-aware: Metax' devices are judged without their topology"),
    ],
)
def test_what_can_not_be_taken_over_is_refused_by_name(word: str, reason: str) -> None:
    with pytest.raises(SettingError) as raised:
        translate([word], SWITCHES)
    assert str(raised.value).startswith(reason)


def serve(folder: Path, *words: str) -> Result:
    """Serve as far as the listening, which fails: the address is none of this machine's."""
    cluster, config = folder / "cluster.yaml", folder / "device-config.yaml"
    cluster.write_text(yaml.safe_dump_all([a_node("node1")]))
    config.write_text("nvidia: {}\n")
    placed = [word.replace("0.0.0.0:443", "192.0.2.1:0").replace("/device-config.yaml", str(config)) for word in words]
    ours = ["--cluster", str(cluster), "--no-publish", "--spool", str(folder / "spool")]
    return CliRunner().invoke(app, ["serve", *placed, *ours], env={})


def test_the_charts_arguments_start_the_scheduler(tmp_path: Path) -> None:
    result = serve(tmp_path, *CHART, "--profiling=true", "--node-lock-retry-timeout=20s")
    *notes, last = result.stderr.splitlines()
    assert last.startswith("--listen: can't listen on 192.0.2.1:0")
    assert len(notes) == 5


def test_a_wrong_switch_is_one_line(tmp_path: Path) -> None:
    result = serve(tmp_path, "--leader-elect=maybe")
    assert (result.exit_code, result.stderr) == (2, "--leader-elect: 'maybe' is neither true nor false\n")
