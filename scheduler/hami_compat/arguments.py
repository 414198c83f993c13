"""The argument list of HAMi's scheduler, taken as it stands: each flag of v2.10 is understood or refused by name.

Go writes switches as `--leader-elect=true`. What HAMi has and this scheduler has not is either without effect, which is
reported, or refused where ignoring it would change decisions. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from runtime.errors import SettingError

_OURS: Final = {
    "--scheduler-name": "--name",
    "--node-scheduler-policy": "--node-policy",
    "--gpu-scheduler-policy": "--device-policy",
}
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
"""Values of Go's `strconv.ParseBool`."""

_STDERR: Final = "the log goes to standard error"
_SERVED: Final = "devices that the device configuration names are served"
_SWITCHES_WITHOUT_EFFECT: Final = {
    "--legacy-metrics": "docs/metrics-scheduler.md has the names of the metrics",
    "--enable-ascend": _SERVED,
    "--enable-iluvatar": _SERVED,
    "--profiling": "py-spy and memray attach to the process (docs/scheduler-edges.md)",
    "--debug": "-v chooses the log's level",
    "--logtostderr": _STDERR,
    "--alsologtostderr": _STDERR,
    "--skip_headers": "log lines have klog's header",
    "--skip_log_headers": _STDERR,
    "--add_dir_header": "log lines name HAMi's file",
    "--one_output": _STDERR,
}
_VALUES_WITHOUT_EFFECT: Final = {
    "--stderrthreshold": _STDERR,
    "--log_file_max_size": _STDERR,
    "--log_backtrace_at": "there are no stack traces of Go",
}
_REFUSED: Final = {
    "--log_dir": f"{_STDERR}, redirect it",
    "--log_file": f"{_STDERR}, redirect it",
    "--vmodule": "there is one level for all lines, write -v LEVEL",
    "--sgpu-topology-aware": "Metax' devices are judged without their topology",
}
_VENDORS: Final = ("cambricon", "dcu", "enflame", "iluvatar", "kunlun", "metax", "mthreads", "nvidia")
"""Their flags name resources, which only the device configuration does here."""
_EMPTY_IS_UNSET: Final = frozenset(
    ("--cert_file", "--key_file", "--leader-elect-resource-name", "--leader-elect-resource-namespace")
)


class Arguments(NamedTuple):
    words: list[str]
    """Arguments that the command line understands."""
    notes: list[str]
    """Notes about arguments without effect."""


def translate(words: Sequence[str], switches: Mapping[str, str]) -> Arguments:
    """Translate the arguments to this scheduler's own spelling.

    switches: each flag that takes no value, with the flag that switches the same off. Raises `SettingError` for a flag
    of HAMi that can't be taken over.
    """
    translation = _Translation(switches, is_hamis=any(word.partition("=")[0] == "--scheduler-name" for word in words))
    return Arguments(list(translation.translate(words)), translation.notes)


class _Translation:
    def __init__(self, switches: Mapping[str, str], *, is_hamis: bool) -> None:
        self._switches, self._is_hamis = switches, is_hamis
        self.notes: list[str] = []

    def translate(self, words: Sequence[str]) -> Iterator[str]:
        remaining = iter(words)
        for word in remaining:
            flag, equals, value = word.partition("=")
            if reason := _explain_refusal(flag):
                raise SettingError(f"{flag}: {reason}")
            if flag in _SWITCHES_WITHOUT_EFFECT or flag in _VALUES_WITHOUT_EFFECT:
                self._skip(flag, remaining, takes_value=flag in _VALUES_WITHOUT_EFFECT and not equals)
            elif flag in self._switches:
                yield from self._switch(flag, value if equals else "true")
            elif equals:
                yield from self._with_value(_OURS.get(flag, flag), flag, value)
            else:
                yield _OURS.get(word, word)

    def _skip(self, flag: str, remaining: Iterator[str], *, takes_value: bool) -> None:
        if takes_value:
            next(remaining, None)
        reason = _SWITCHES_WITHOUT_EFFECT.get(flag) or _VALUES_WITHOUT_EFFECT[flag]
        self.notes.append(f"{flag} has no effect: {reason}")

    def _switch(self, flag: str, value: str) -> Iterator[str]:
        if value not in _TRUE | _FALSE:
            raise SettingError(f"{flag}: {value!r} is neither true nor false")
        yield flag if value in _TRUE else self._switches[flag]
        # In HAMi the Lease is that of the kube-scheduler in the same pod; taking it ourselves would lock that one out.
        if flag == "--leader-elect" and value in _TRUE and self._is_hamis:
            self.notes.append("--leader-elect: as in HAMi, it leads while the kube-scheduler in its own pod does")
            yield "--leader-elect-with-kube-scheduler"

    def _with_value(self, ours: str, flag: str, value: str) -> Iterator[str]:
        if not value and flag in _EMPTY_IS_UNSET:
            return
        # Go listens on all addresses where only a port is given.
        if flag == "--metrics-bind-address" and value.startswith(":"):
            value = f"0.0.0.0{value}"  # noqa: S104 - asked for
        if flag == "--kube-timeout" and value.isdecimal():
            if not int(value):
                self.notes.append("--kube-timeout=0: requests without a limit are not offered, it is 10s")
                return
            value = f"{value}s"
        yield f"{ours}={value}"


def _explain_refusal(flag: str) -> str:
    if any(flag.startswith(f"--{vendor}-") for vendor in _VENDORS):
        return "write the resource's name into the device configuration (--device-config-file)"
    return _REFUSED.get(flag, "")
