"""``schedulerlog dashboards install`` against a stand-in for OpenSearch Dashboards: what it sends, what it makes of
each answer."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.dashboards.__main__ import app
from deploy.dashboards.importing import DashboardsServer, ImportRefusedError, install
from deploy.dashboards.overview import list_saved_objects
from deploy.dashboards.saved_objects import MIGRATION_VERSIONS, Reference, SavedObject
from runtime.errors import SettingError, UnreachableError
from tests.support.certificates import a_pair
from tests.support.fakes.dashboards import DashboardsStandIn, dashboards_stand_in

OBJECTS = list_saved_objects("https://api.example")
OF_ADMIN = "s3cret"


@pytest.fixture
def stand_in() -> Iterator[DashboardsStandIn]:
    with dashboards_stand_in() as running:
        yield running


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, ["install", *arguments], env=environment)


def test_every_object_is_stored(stand_in: DashboardsStandIn) -> None:
    assert install(DashboardsServer(stand_in.url), OBJECTS) == len(OBJECTS)
    assert set(stand_in.stored) == {(saved.type, saved.id) for saved in OBJECTS}


def test_installing_twice_leaves_the_same_objects(stand_in: DashboardsStandIn) -> None:
    install(DashboardsServer(stand_in.url), OBJECTS)
    before = dict(stand_in.stored)
    install(DashboardsServer(stand_in.url), OBJECTS)
    assert stand_in.stored == before


def test_what_an_earlier_version_installed_is_replaced(stand_in: DashboardsStandIn) -> None:
    older = [replace(saved, attributes=saved.attributes | {"title": "old"}) for saved in OBJECTS]
    install(DashboardsServer(stand_in.url), older)
    install(DashboardsServer(stand_in.url), OBJECTS)
    assert all(saved["attributes"]["title"] != "old" for saved in stand_in.stored.values())


def test_an_object_with_a_missing_reference_is_named_although_the_status_is_200(stand_in: DashboardsStandIn) -> None:
    search = next(saved for saved in OBJECTS if saved.type == "search")
    with pytest.raises(ImportRefusedError) as refused:
        install(DashboardsServer(stand_in.url), [search])
    (pattern,) = search.references
    assert str(refused.value) == f"search {search.id}: it needs index-pattern {pattern.id}, which are not there"


def test_an_attribute_that_the_mapping_lacks_is_reported_in_the_words_of_dashboards(
    stand_in: DashboardsStandIn,
) -> None:
    wrong = SavedObject("visualization", "wrong", {"title": "wrong", "colour": "red"})
    with pytest.raises(ImportRefusedError, match=r"^visualization wrong: mapping set to strict, .*colour"):
        install(DashboardsServer(stand_in.url), [*OBJECTS, wrong])


def test_an_answer_that_counts_fewer_objects_is_an_error(stand_in: DashboardsStandIn) -> None:
    stand_in.answer = {"success": True, "successCount": 3}
    with pytest.raises(ImportRefusedError, match=f"took 3 of {len(OBJECTS)} objects"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def test_an_answer_of_another_service_is_an_error(stand_in: DashboardsStandIn) -> None:
    stand_in.answer = {"tagline": "The OpenSearch Project: https://opensearch.org/"}
    with pytest.raises(ImportRefusedError, match="is something else at that URL"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def test_an_object_that_was_stored_otherwise_is_named(stand_in: DashboardsStandIn) -> None:
    stand_in.alters = {"title": "another"}
    with pytest.raises(ImportRefusedError, match="index-pattern schedulerlog-attempts: Dashboards stored other title"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def test_fields_that_dashboards_filled_into_a_pattern_are_no_difference(stand_in: DashboardsStandIn) -> None:
    patterns = [saved for saved in OBJECTS if saved.type == "index-pattern"]
    stand_in.alters = {"fields": "[]"}
    assert install(DashboardsServer(stand_in.url), patterns) == len(patterns)


def test_a_newer_version_than_dashboards_knows_is_one_line_with_the_next_step(
    stand_in: DashboardsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MIGRATION_VERSIONS, "search", "8.0.0")
    with pytest.raises(SettingError, match=r"answers 422 .* 3\.0 or newer is needed"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def test_a_page_to_log_in_is_named_as_such(stand_in: DashboardsStandIn) -> None:
    stand_in.page = b"<html>log in</html>"
    with pytest.raises(SettingError, match="something else than JSON"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def test_a_server_that_is_away_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"^Dashboards at http://127\.0\.0\.1:1 does not answer: .*refused"):
        install(DashboardsServer("http://admin:secret@127.0.0.1:1"), OBJECTS)


def test_other_references_than_were_sent_are_a_difference(stand_in: DashboardsStandIn) -> None:
    install(DashboardsServer(stand_in.url), OBJECTS)
    dashboard = OBJECTS[-1]
    changed = stand_in.stored["dashboard", dashboard.id]
    stand_in.answer = {"success": True, "successCount": len(OBJECTS)}
    changed["references"] = [*changed["references"], describe_reference(Reference("panel_99", "search", "gone"))]
    with pytest.raises(ImportRefusedError, match=f"dashboard {dashboard.id}: Dashboards stored other references"):
        install(DashboardsServer(stand_in.url), OBJECTS)


def describe_reference(reference: Reference) -> dict[str, str]:
    return {"name": reference.name, "type": reference.type, "id": reference.id}


def test_the_command_takes_a_user_and_a_file_with_the_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{OF_ADMIN}\n")
    with dashboards_stand_in(asks_for=OF_ADMIN) as stand_in:
        wrong = invoke("--url", stand_in.url)
        assert wrong.exit_code == 2
        assert "answers 401" in wrong.output
        assert "give --username and --password-file" in wrong.output
        right = invoke("--url", stand_in.url, "--user", "admin", "--password-file", str(tmp_path / "password"))
    assert right.exit_code == 0, right.output
    assert right.output.startswith(f"{len(OBJECTS)} objects are installed: {stand_in.url}/app/dashboards#/view/")


@pytest.mark.parametrize("way", ["flags", "url"])
def test_a_password_that_was_given_is_named_as_wrong_and_not_asked_for(tmp_path: Path, way: str) -> None:
    (tmp_path / "password").write_text("of yesterday\n")
    with dashboards_stand_in(asks_for=OF_ADMIN) as stand_in:
        with_user = stand_in.url.replace("://", "://admin:of%20yesterday@")
        flags = ["--url", stand_in.url, "--user", "admin", "--password-file", str(tmp_path / "password")]
        wrong = invoke(*(flags if way == "flags" else ["--url", with_user]))
    assert wrong.exit_code == 2
    assert "it refuses user admin with this password: correct either" in wrong.output
    assert "give --username" not in wrong.output
    assert "yesterday" not in wrong.output


def test_a_user_and_password_may_stand_in_the_url_and_are_not_shown() -> None:
    with dashboards_stand_in(asks_for="p@ss/word") as stand_in:
        result = invoke("--url", stand_in.url.replace("://", "://admin:p%40ss%2Fword@"))
    assert result.exit_code == 0, result.output
    assert "p%40ss" not in result.output


def test_the_command_reads_its_settings_from_the_environment_and_sends_the_tenant() -> None:
    with dashboards_stand_in(asks_for=OF_ADMIN) as stand_in:
        variables = {"URL": stand_in.url, "USERNAME": "admin", "PASSWORD": OF_ADMIN, "TENANT": "global"}
        result = invoke(**{f"SCHEDULERLOG_DASHBOARDS_{name}": value for name, value in variables.items()})
        assert result.exit_code == 0, result.output
        assert stand_in.imports[0]["securitytenant"] == "global"


def test_over_tls_the_certificate_is_checked_against_the_given_authority(tmp_path: Path) -> None:
    pair = a_pair(tmp_path)
    with dashboards_stand_in(pair.certificate, pair.key) as stand_in:
        unknown = invoke("--url", stand_in.url)
        assert unknown.exit_code == 1
        assert "CERTIFICATE_VERIFY_FAILED" in unknown.output
        trusted = invoke("--url", stand_in.url, "--ca-file", str(pair.certificate))
        assert trusted.exit_code == 0, trusted.output


def test_without_a_url_the_command_ends_with_one_line() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert result.output.startswith("SCHEDULERLOG_DASHBOARDS_URL is not set: Base URL of OpenSearch Dashboards")


def test_the_export_goes_to_a_file_or_to_the_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "schedulerlog.ndjson"
    written = CliRunner().invoke(app, ["export", "--api-url", "https://api.example/", "--output", str(file)])
    assert written.exit_code == 0, written.output
    printed = CliRunner().invoke(app, ["export", "--api-url", "https://api.example"])
    assert file.read_bytes() == printed.stdout_bytes
    assert file.read_bytes().count(b"\n") == len(OBJECTS)


def test_the_rules_are_written_to_the_file_of_the_argument(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["slo-rules", str(tmp_path / "slo.yaml")]).exit_code == 0
    assert "kind: PrometheusRule" in (tmp_path / "slo.yaml").read_text()
