"""By the XDG Base Directory Specification: https://specifications.freedesktop.org/basedir-spec/latest/"""

from pathlib import Path

import pytest

from runtime.errors import SettingError
from runtime.files.state_files import locate_state_folder
from scheduler.settings import Settings


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("/var/state", "/var/state"), ("", "/home/someone/.local/state"), ("relative", "/home/someone/.local/state")],
)
def test_it_is_where_the_specification_says(monkeypatch: pytest.MonkeyPatch, variable: str, folder: str) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert locate_state_folder({"XDG_STATE_HOME": variable}) == Path(folder) / "schedulerlog"
    assert locate_state_folder({}) == Path("/home/someone/.local/state/schedulerlog")


def test_a_user_without_a_home_reads_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(SettingError, match="XDG_STATE_HOME"):
        locate_state_folder({})


def test_a_spool_is_found_again_from_another_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir("/")
    assert Settings.model_fields["spool"].get_default(call_default_factory=True) == tmp_path / "schedulerlog" / "spool"
