"""Errors that a user can mend: the command line shows the message and exits with the code."""


class EmoError(Exception):
    """Base of the errors whose message names the file, row or key at fault and the way out."""

    exit_code = 1


class DataError(EmoError):
    """A file or its content is not what it should be."""


class CheckError(EmoError):
    """A stage ran, but what it made fails its check."""


class ConfigError(EmoError):
    """The study or a command asks for something that cannot be."""

    exit_code = 2
