"""Error that ends a command with one line on stderr instead of a traceback."""


class SettingError(Exception):
    """A flag or variable is missing or wrong; the message names it and says what to write."""


class UnreachableError(Exception):
    """A service did not answer in time; the message names it and its address."""


class NotProvisionedError(Exception):
    """A store lacks the topics or templates of this version; the message says how to make them."""


class FixedCredentialsError(Exception):
    """A store has refused credentials for long that only a restart reads again; the message names their variable."""
