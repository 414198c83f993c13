"""Addresses of Dashboards and the API; runtime.settings.settings says how settings are read."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import SecretStr

from runtime.settings.settings import EnvironmentSettings, Flag, Url

DEFAULT_API_URL: Final = "http://127.0.0.1:9090"


class ExportSettings(EnvironmentSettings):
    api_url: Annotated[Url, Flag(metavar="URL")] = DEFAULT_API_URL
    """Base URL of the API in the links of every row, as the browsers of people reach it."""


class InstallSettings(EnvironmentSettings):
    dashboards_url: Annotated[Url, Flag(names=("--url",), metavar="URL")]
    """Base URL of OpenSearch Dashboards, with its base path if it has one: https://dashboards.example:5601."""
    api_url: Annotated[Url, Flag(metavar="URL")] = DEFAULT_API_URL
    """Base URL of the API in the links of every row, as the browsers of people reach it."""
    dashboards_username: Annotated[str | None, Flag(names=("--username", "--user"))] = None
    """User of Dashboards, if it asks for one."""
    dashboards_password: Annotated[SecretStr | None, Flag(names=("--password-file",))] = None
    """Password of the user of Dashboards."""
    dashboards_ca_file: Annotated[Path | None, Flag(names=("--ca-file",), metavar="FILE")] = None
    """The authorities that may have signed the certificate of Dashboards, in PEM form; default: the system's."""
    dashboards_tenant: Annotated[str | None, Flag(names=("--tenant",), metavar="NAME")] = None
    """The tenant that gets the objects, where the security plugin has tenants: `global` for all users."""
