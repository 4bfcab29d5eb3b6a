"""What can go wrong on the command line, and the exit code of each."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    MEMORY = 5
    OUTPUT = 6
    INTERRUPTED = 130
    PIPE = 141


#: for the help
MEANINGS = {
    ExitCode.OK: "all went well",
    ExitCode.INTERNAL: "a mistake in nuptse itself",
    ExitCode.USAGE: "options that do not exist, or do not go together",
    ExitCode.INPUT: "data or a taxonomy that cannot be read, or make no sense",
    ExitCode.MODEL: "a model file that cannot be read",
    ExitCode.MEMORY: "more memory would be needed",
    ExitCode.OUTPUT: "a result that cannot be written, or would overwrite a file",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.PIPE: "whoever read the output went away",
}


class CommandError(Exception):
    """Something to be told to the user; ends the command."""

    code = ExitCode.INTERNAL


class UsageError(CommandError):
    """Options that do not go together."""

    code = ExitCode.USAGE


class InputError(CommandError):
    """Data or a taxonomy that cannot be used."""

    code = ExitCode.INPUT


class ModelError(CommandError):
    """A model file that cannot be used."""

    code = ExitCode.MODEL


class OutputError(CommandError):
    """A result that cannot be written."""

    code = ExitCode.OUTPUT
