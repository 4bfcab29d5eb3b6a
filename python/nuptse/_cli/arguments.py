"""Commands and their options."""

from __future__ import annotations

import argparse
import math
import re

from nuptse import __version__
from nuptse._cli.errors import MEANINGS
from nuptse._cli.reading import READERS

_EPILOG = "exit codes:\n" + "\n".join(f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items())
_DATA = "CSV, TSV, Parquet, svmlight, .npz or text, also compressed (.gz, .xz, .bz2); - is standard input"


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    main = argparse.ArgumentParser(
        prog="nuptse",
        description="Kernel classification with many, structured classes, tuned by itself, with honest probabilities.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main.add_argument("--version", action="version", version=f"nuptse {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, about, add in (
        ("train", "learn a model from labelled data", _add_train),
        ("predict", "predict the labels of data", _add_predict),
        ("evaluate", "score a model on labelled data", _add_evaluate),
        ("inspect", "show what is in a model file", _add_inspect),
        ("demo", "train on data that come with the package, and print how it went", _add_demo),
    ):
        command = commands.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add(command)
        _add_manners(command)
    return main


def _add_train(command: argparse.ArgumentParser) -> None:
    command.add_argument("data", metavar="DATA", help=_DATA)
    command.add_argument("--out", metavar="MODEL", required=True, help="the model file to write")
    command.add_argument("--force", action="store_true", help="overwrite MODEL if it is there")
    tree = command.add_argument_group("classes that form a tree")
    one = tree.add_mutually_exclusive_group()
    one.add_argument("--taxonomy", metavar="FILE", help="TSV or CSV of edges, nodes or paths, or JSON")
    one.add_argument("--labels-are-paths", action="store_true", help="labels are paths like A/01/B; they make the tree")
    tree.add_argument("--names", metavar="COLUMN", help="take labels from this column of a taxonomy of nodes")
    model = command.add_argument_group("the model")
    model.add_argument("--kernel", choices=["rbf", "linear"], help="default: linear for text and sparse data, else rbf")
    model.add_argument(
        "--scale",
        choices=["auto", "none"],
        default="auto",
        help="standardise columns, or give sparse rows unit norm; default: auto",
    )
    model.add_argument(
        "--variance",
        type=_positive,
        metavar="V",
        help="of the kernel: where learning starts, or what --no-learn keeps; default: by the kernel and the data",
    )
    model.add_argument(
        "--no-learn", action="store_true", help="keep the hyperparameters that learning would start with"
    )
    model.add_argument(
        "--folds", type=_at_least(2), metavar="N", help="of the cross-validation; default: 5, and 3 for text"
    )
    model.add_argument("--groups", metavar="COLUMN", help="rows with the same value here are held out together")
    model.add_argument(
        "--max-evaluations",
        type=_at_least(1),
        default=60,
        metavar="N",
        help="of the criterion while learning; default: 60",
    )
    model.add_argument(
        "--seed", type=_at_least(0), metavar="N", help="for the folds; default: the same ones every time"
    )
    words = command.add_argument_group("words of documents")
    words.add_argument(
        "--ngrams", type=_at_least(1), default=1, metavar="N", help="count sequences of up to N words; default: 1"
    )
    words.add_argument(
        "--min-df", type=_at_least(1), default=1, metavar="N", help="leave out words of fewer documents; default: 1"
    )
    words.add_argument("--stop-words", choices=["english"], help="leave out the most common words of a language")
    words.add_argument(
        "--weighting", choices=["tf-idf", "log", "counts"], default="tf-idf", help="of words; default: tf-idf"
    )
    _add_data(command, "train")
    work = _add_work(command)
    work.add_argument(
        "--memory-limit", type=_size, metavar="SIZE", help="such as 4G; default: what the machine has left"
    )
    work.add_argument(
        "--checkpoint", metavar="FILE", help="keep the state of learning here; the same command goes on with it"
    )


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a model file")
    command.add_argument("data", metavar="DATA", help=_DATA)
    result = command.add_argument_group("what is written")
    result.add_argument(
        "--loss",
        choices=["zero_one", "taxonomic", "parent"],
        default="zero_one",
        help="the loss that decisions make small; the latter two need a tree; default: zero_one",
    )
    more = result.add_mutually_exclusive_group()
    more.add_argument("--proba", action="store_true", help="the probability of every class too")
    more.add_argument("--top", type=_at_least(1), metavar="K", help="the K most probable classes too")
    result.add_argument("--id", dest="identifier", metavar="COLUMN", help="a column of DATA to write in front")
    result.add_argument("--out", metavar="FILE", help="write here, not to standard output")
    result.add_argument("--force", action="store_true", help="overwrite FILE if it is there")
    _add_data(command, "predict")
    _add_work(command)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a model file")
    command.add_argument("data", metavar="DATA", help=_DATA)
    command.add_argument("--report", metavar="FILE", help="write a page with tables and pictures, such as report.html")
    command.add_argument("--title", help="the title of the page")
    command.add_argument("--force", action="store_true", help="overwrite the report if it is there")
    command.add_argument(
        "--skip-unknown", action="store_true", help="leave out points whose label the model does not know"
    )
    _add_data(command, "evaluate")
    _add_work(command)


def _add_inspect(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a model file")
    command.add_argument("--tree", action="store_true", help="show all of the tree, and all classes")
    command.add_argument(
        "--top", type=_at_least(1), default=8, metavar="K", help="show K inputs of every class; default: 8"
    )


def _add_demo(command: argparse.ArgumentParser) -> None:
    _add_work(command)


def _add_data(command: argparse.ArgumentParser, purpose: str) -> None:
    """Add the options that say what is where in the data."""
    data = command.add_argument_group("the data")
    data.add_argument("--format", choices=list(READERS), help="default: by the name of DATA")
    data.add_argument(
        "--label", metavar="NAME", help="the column with the labels, in .npz the array; default: label, in .npz y"
    )
    if purpose != "predict":
        data.add_argument("--labels", dest="labels_path", metavar="FILE", help="a file with one label a line")
        data.add_argument("--weight", metavar="COLUMN", help="how often every row counts")
    data.add_argument("--text", metavar="NAME", help="the column with documents; other columns are left alone")
    data.add_argument(
        "--ignore", metavar="COLUMN", action="append", default=[], help="leave out a column; may be repeated"
    )
    data.add_argument(
        "--where",
        metavar="COLUMN=VALUE",
        type=_condition,
        action="append",
        default=[],
        help="only rows with this value; may be repeated",
    )
    data.add_argument("--delimiter", metavar="C", help="default: by the format; 'tab' is a tab")
    data.add_argument(
        "--quotes", action=argparse.BooleanOptionalAction, help="fields may be in quotes; default: in CSV"
    )
    data.add_argument(
        "--no-header", dest="header", action="store_false", help="the first line is data; columns are 1, 2, ..."
    )
    data.add_argument("--encoding", default="utf-8", metavar="NAME", help="of text; default: utf-8")


def _add_work(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    work = command.add_argument_group("the work")
    work.add_argument("--threads", type=_at_least(1), metavar="N", help="default: all cores, or NUPTSE_NUM_THREADS")
    return work


def _add_manners(command: argparse.ArgumentParser) -> None:
    manners = command.add_argument_group("manners")
    manners.add_argument("--json", action="store_true", help="write JSON for machines")
    loud = manners.add_mutually_exclusive_group()
    loud.add_argument("-q", "--quiet", action="store_true", help="say nothing but results and errors")
    loud.add_argument("-v", "--verbose", action="store_true", help="show progress, also where nobody seems to watch")
    manners.add_argument("--debug", action="store_true", help="show where in the program an error happened")


class _at_least:  # noqa: N801 - it stands where argparse has the name of a type
    """Reads whole numbers from some number on."""

    def __init__(self, least: int) -> None:
        self.least = least

    def __call__(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if not self.least <= number < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least {self.least}")
        return number


def _positive(text: str) -> float:
    """Read a number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above zero")
    return number


def _size(text: str) -> int:
    """Read a number of bytes, as 500M or 4G."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    size = int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " ")) if found else 0
    if not 0 < size < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory; write it as 500M or 4G")
    return size


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be COLUMN=VALUE, such as split=train")
    return name.strip(), value.strip()
