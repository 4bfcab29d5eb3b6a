"""Whether the commands in the documentation exist: targets of make, parts of cargo, extras of the package, files."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
CARGO_COMMANDS = {"add", "bench", "build", "doc", "package", "run", "test"}
#: of the shell itself, or on every machine
PLAIN_COMMANDS = {"cat", "cd", "cp", "echo", "git", "head", "ls", "mkdir"}


def commands(code):
    """Return the commands of a block as lists of words; in a transcript, lines without a prompt are output."""
    lines = code.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    parts = (part for line in lines for part in re.split(r"\|\||&&|[|;]", line))
    words = (shlex.split(part, comments=True) for part in parts)
    return [found for found in map(_without_settings, words) if found]


def _without_settings(words):
    """Drop what is set for one command only, as in NUPTSE_DATA=folder."""
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    return words


def check_command(words):
    """Fail where a command cannot work."""
    program, *arguments = words
    if program == "make":
        _check_make(arguments)
    elif program == "cargo":
        _check_cargo(arguments)
    elif program == "pip":
        _check_pip(arguments)
    elif program == "nuptse" or words[:3] == ["python", "-m", "nuptse"]:
        _check_nuptse(arguments if program == "nuptse" else arguments[2:])
    elif program == "python":
        assert (PROJECT / arguments[0]).exists(), f"no file {arguments[0]}"
    else:
        assert program in PLAIN_COMMANDS, f"{program} is no command that is known to work"


def _check_make(arguments):
    targets = set(re.findall(r"^([\w-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    wanted = {argument for argument in arguments if "=" not in argument}
    assert wanted <= targets, f"make has no target {wanted - targets}"


def _check_cargo(arguments):
    assert arguments[0] in CARGO_COMMANDS
    for option, folder in (("--example", "examples"), ("--bench", "benches")):
        if option in arguments:
            assert (PROJECT / folder / f"{arguments[arguments.index(option) + 1]}.rs").exists()


def _check_pip(arguments):
    assert arguments[0] == "install"
    settings = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    extras = set(re.findall(r"^(\w+) = \[", settings.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    for group in re.findall(r"nuptse\[([\w,]+)\]", " ".join(arguments)):
        assert set(group.split(",")) <= extras, f"{group} is no extra"


def _check_nuptse(arguments):
    command = [word for word in arguments[:1] if not word.startswith("-")]
    subprocess.run([sys.executable, "-m", "nuptse", *command, "--help"], check=True, capture_output=True, timeout=60)
