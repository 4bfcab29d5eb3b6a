"""Runs a command, and turns whatever goes wrong into one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import TYPE_CHECKING

from nuptse._cli import arguments
from nuptse._cli.demo import demo
from nuptse._cli.errors import CommandError, ExitCode
from nuptse._cli.evaluate import evaluate
from nuptse._cli.inspect import inspect
from nuptse._cli.output import Console
from nuptse._cli.predict import predict
from nuptse._cli.train import train

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

COMMANDS: dict[str, Callable[[argparse.Namespace, Console], None]] = {
    "train": train,
    "predict": predict,
    "evaluate": evaluate,
    "inspect": inspect,
    "demo": demo,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    try:
        options = arguments.parser().parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return end.code if isinstance(end.code, int) else ExitCode.USAGE
    console = Console(options.json, options.quiet, options.verbose)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # trees and labels must not fail on a terminal with few letters
            stream.reconfigure(errors="backslashreplace")
    try:
        with console.hearing_warnings():
            COMMANDS[options.command](options, console)
    except BrokenPipeError:
        _leave_the_pipe()
        return ExitCode.PIPE
    except KeyboardInterrupt:
        again = getattr(options, "checkpoint", None)
        _say(f"interrupted{'; the same command goes on where it was' if again else '; nothing was written'}")
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - nobody should meet a traceback
        if options.debug:
            traceback.print_exc()
        reason, code = _explained(error)
        _say(f"error: {reason}")
        return code
    return ExitCode.OK


def _explained(error: Exception) -> tuple[str, ExitCode]:
    """Return what is said of an error, and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, MemoryError):
        return str(error) or "there is not enough memory", ExitCode.MEMORY
    told = f"{type(error).__name__}: {error}".strip()
    return f"this should not happen, please report it: {told} (--debug shows where)", ExitCode.INTERNAL


def _say(text: str) -> None:
    # One line, whatever other packages have to say.
    sys.stderr.write(f"nuptse: {' '.join(text.splitlines())}\n")


def _leave_the_pipe() -> None:
    """Let Python end without another attempt to write to a pipe that nobody reads."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # standard output is no file
        pass
