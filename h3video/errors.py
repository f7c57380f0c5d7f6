"""The error that a person reads: what was given, what the limit is, what to do."""


class UsageError(ValueError):
    """A value that cannot be used. The message is one line: value, limit, remedy.

    The command line prints it and ends with exit code 2; a node shows it.
    """
