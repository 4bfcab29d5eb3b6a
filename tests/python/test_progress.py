"""What is shown of long work."""

import io

from conftest import make_blobs
from nuptse import KernelClassifier
from nuptse._progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_every_report_has_a_line():
    stream = io.StringIO()
    line = ProgressLine(10, stream)
    line(1, None, 123.4, 0.5)
    line(1, 7, 120.0, 0.25)
    line.close()
    first, second = stream.getvalue().splitlines()
    assert first.startswith("evaluation 1: criterion 123.4, largest slope 5.0e-01")
    assert "to go" in first
    assert second == "step 1: 7 products, objective 120, max|alpha + g| 2.5e-01"


def test_a_terminal_has_one_line_that_changes():
    stream = Terminal()
    line = ProgressLine(None, stream)
    line(1, 100_000, 123.456789, 0.5)
    line(2, 3, 1.0, 0.5)  # too soon to be shown
    line.close()
    assert stream.getvalue().count("\r") == 1
    assert stream.getvalue().endswith("\n")
    line.close()
    assert stream.getvalue().count("\n") == 1


def test_nothing_is_shown_unless_asked_for(rng, capsys):
    X, y = make_blobs(rng)
    KernelClassifier(random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    KernelClassifier(random_state=0, verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "evaluation 1 on" in shown.err
    assert "step 0: " in shown.err
