"""The command line: commands, what they print, and how they end."""

import gzip
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import nuptse
from nuptse import KernelClassifier, TextClassifier
from nuptse._cli.arguments import parser
from nuptse._cli.errors import MEANINGS, ExitCode
from nuptse._cli.main import COMMANDS, main

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TREE = '{"smooth": ["setosa"], "rough": ["versicolor", "virginica"]}'
DOCUMENTS = [("cat", "a cat purrs"), ("cat", "the cat sleeps"), ("oak", "an oak grows"), ("oak", "the oak stands")] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with data, and models that were trained on them by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    lines = [
        f"{number},{','.join(map(str, row))},{name}" for number, (row, name) in enumerate(zip(X, NAMES, strict=True))
    ]
    header = "id,sl,sw,pl,pw,species"
    (folder / "iris.csv").write_text("\n".join([header, *lines[::2]]) + "\n", encoding="utf-8")
    (folder / "test.csv.gz").write_bytes(gzip.compress("\n".join([header, *lines[1::2]]).encode()))
    (folder / "tree.json").write_text(TREE, encoding="utf-8")
    text = "".join(f"{label}\t{document}\n" for label, document in DOCUMENTS)
    (folder / "docs.txt").write_text(text, encoding="utf-8")
    table = ["--label", "species", "--ignore", "id", "--no-learn", "-q"]
    models = {
        "flat": [folder / "iris.csv", *table],
        "tree": [folder / "iris.csv", *table, "--taxonomy", folder / "tree.json"],
        "text": [folder / "docs.txt", "-q"],
    }
    for name, arguments in models.items():
        assert main(["train", *map(str, arguments), "--out", str(folder / f"{name}.nuptse")]) == 0
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run a command in the folder; return its exit code, and what it wrote."""
    monkeypatch.chdir(folder)
    capsys.readouterr()

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return SimpleNamespace(code=code, out=out, err=err, rows=[line.split("\t") for line in out.splitlines()])

    return call


def start(*arguments, **more):
    """Start a command as a process of its own."""
    command = [sys.executable, "-m", "nuptse", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


# Train


def test_train_says_what_it_did(run, tmp_path):
    out = tmp_path / "model"
    done = run("train", "iris.csv", "--label", "species", "--ignore", "id", "--out", out, "--seed", 3, "--folds", 3)
    assert done.code == 0
    assert "points" in done.out
    assert "cv log loss" in done.out
    clf = nuptse.load(out)
    assert clf.feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]
    assert (clf.folds, clf.random_state, clf.scale) == (3, 3, "auto")
    same = KernelClassifier("rbf", scale="auto", folds=3, random_state=3).fit(X[::2], NAMES[::2])
    np.testing.assert_array_equal(clf.dual_coef_, same.dual_coef_)


def test_train_writes_json_for_machines(run, tmp_path):
    done = run(
        "train", "iris.csv", "--label", "species", "--ignore", "id", "--out", tmp_path / "m", "--no-learn", "--json"
    )
    content = json.loads(done.out)
    assert content["points"] == 75
    assert content["classes"] == ["setosa", "versicolor", "virginica"]
    assert content["cv_value"] is None
    assert content["warnings"] == []
    assert content["bytes"] == (tmp_path / "m").stat().st_size
    assert set(content) == {
        *("estimator", "points", "inputs", "classes", "levels", "nodes", "kernel", "hyperparameters", "cv_value"),
        *("cv_log_loss", "evaluations", "converged", "solver", "seconds", "path", "bytes", "warnings"),
    }


def test_kernels_are_chosen_by_the_data(folder):
    assert nuptse.load(folder / "flat.nuptse").kernel == "rbf"
    text = nuptse.load(folder / "text.nuptse")
    assert isinstance(text, TextClassifier)
    assert text.classifier.kernel == "linear"


def test_train_passes_options_on(run, tmp_path):
    options = ["--kernel", "linear", "--scale", "none", "--max-evaluations", 7, "--memory-limit", "2G", "--threads", 1]
    out = tmp_path / "model"
    path = tmp_path / "data.csv"
    rows = [f"{x},{i % 3 + 1},{i // 6},{name}" for i, (x, name) in enumerate(zip(X[:, 2], NAMES, strict=True))]
    path.write_text("\n".join(["x,w,g,label", *rows]))
    assert run("train", path, "--out", out, "--weight", "w", "--groups", "g", *options).code == 0
    clf = nuptse.load(out)
    assert (clf.kernel, clf.scale, clf.max_evaluations) == ("linear", None, 7)
    assert (clf.n_threads, clf.memory_limit) == (None, None)  # which were about that run
    same = KernelClassifier("linear", max_evaluations=7)
    with pytest.warns(ConvergenceWarning, match="still falling"):
        same.fit(X[:, 2:3], NAMES, np.arange(150) % 3 + 1.0, groups=np.arange(150) // 6)
    np.testing.assert_array_equal(clf.dual_coef_, same.dual_coef_)


def test_a_variance_may_be_given(run, tmp_path):
    for kernel, expected in (("rbf", 3.5), ("linear", 3.5)):
        out = tmp_path / kernel
        arguments = ["train", "iris.csv", "--label", "species", "--no-learn", "--variance", 3.5, "--kernel", kernel]
        assert run(*arguments, "--out", out).code == 0
        assert nuptse.load(out).hyperparameters_["variance"] == expected


def test_files_are_not_overwritten_unless_forced(run, folder, tmp_path):
    before = (folder / "flat.nuptse").read_bytes()
    arguments = ["train", "iris.csv", "--label", "species", "--no-learn", "--out"]
    done = run(*arguments, "flat.nuptse")
    assert (done.code, done.out) == (ExitCode.OUTPUT, "")
    assert "--force" in done.err
    assert (folder / "flat.nuptse").read_bytes() == before
    assert run(*arguments, tmp_path / "none" / "model").code == ExitCode.OUTPUT
    assert run(*arguments, tmp_path).code == ExitCode.OUTPUT
    (tmp_path / "model").write_text("old")
    assert run(*arguments, tmp_path / "model", "--force").code == 0
    assert nuptse.load(tmp_path / "model").classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_bad_input_leaves_nothing_behind(run, tmp_path):
    for arguments in (
        ["iris.csv", "--label", "specie"],
        ["iris.csv", "--label", "id", "--taxonomy", "tree.json"],
        ["missing.csv"],
        ["iris.csv", "--label", "species", "--taxonomy", "iris.csv"],
    ):
        done = run("train", *arguments, "--out", tmp_path / "model")
        assert (done.code, done.out) == (ExitCode.INPUT, "")
        assert done.err.startswith("nuptse: error: ")
        assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_one_class_is_bad_input(run, tmp_path):
    (tmp_path / "one.csv").write_text("a,label\n1,x\n2,x\n")
    done = run("train", tmp_path / "one.csv", "--out", tmp_path / "model")
    assert done.code == ExitCode.INPUT
    assert "one class only" in done.err


def test_labels_that_are_paths_make_the_tree(run, tmp_path):
    lines = "".join(f"{'animal' if label == 'cat' else 'plant'}/{label}\t{text}\n" for label, text in DOCUMENTS)
    (tmp_path / "docs.txt").write_text(lines + "plant/moss\tmoss is green\n")
    arguments = ["train", tmp_path / "docs.txt", "--labels-are-paths", "--no-learn", "--out", tmp_path / "model"]
    assert run(*arguments).code == 0
    assert nuptse.load(tmp_path / "model").hierarchy_.n_levels == 2


def test_numbers_of_nodes_may_stand_for_their_names(run, tmp_path):
    (tmp_path / "tree.tsv").write_text(
        "node\tparent\tcode\n0\t-1\tROOT\n1\t0\tanimal\n2\t0\tplant\n3\t1\tcat\n4\t2\toak\n"
    )
    lines = ["leaf\ttext", *(f"{3 if label == 'cat' else 4}\t{text}" for label, text in DOCUMENTS), "2\tgreen moss"]
    (tmp_path / "docs.tsv").write_text("\n".join(lines))
    model, data = tmp_path / "model", tmp_path / "docs.tsv"
    tree = ["--taxonomy", tmp_path / "tree.tsv", "--names", "code"]
    assert run("train", data, "--label", "leaf", "--text", "text", *tree, "--no-learn", "--out", model).code == 0
    assert nuptse.load(model).classes_.tolist() == ["cat", "oak"]
    assert json.loads(run("evaluate", model, data, "--json").out)["accuracy"] == 1.0
    assert run("predict", model, data).rows[1][0] == "cat"


def test_memory_limits_have_an_exit_code_of_their_own(run, tmp_path):
    done = run("train", "iris.csv", "--label", "species", "--out", tmp_path / "model", "--memory-limit", "1k")
    assert done.code == ExitCode.MEMORY


def test_warnings_are_notes(run, tmp_path):
    arguments = ["train", "iris.csv", "--label", "species", "--ignore", "id", "--max-evaluations", 1, "--json"]
    done = run(*arguments, "--out", tmp_path / "model")
    assert done.code == 0
    assert "nuptse: warning: learning stopped after 1 evaluations" in done.err
    assert len(json.loads(done.out)["warnings"]) == 1
    assert run(*arguments, "--out", tmp_path / "quiet", "--quiet").err == ""


def test_progress_is_shown_when_asked_for(run, tmp_path):
    done = run("train", "iris.csv", "--label", "species", "--out", tmp_path / "model", "--verbose")
    assert "evaluation 1" in done.err
    assert "evaluation" not in done.out.partition("cv log loss")[0]


# Predict


def test_predict_writes_a_table(run):
    done = run("predict", "flat.nuptse", "test.csv.gz")
    assert done.code == 0
    assert done.rows[0] == ["label", "probability"]
    labels = [row[0] for row in done.rows[1:]]
    clf = nuptse.load("flat.nuptse")
    with pytest.warns(UserWarning, match="feature names"):
        assert labels == clf.predict(X[1::2]).tolist()


def test_predict_shows_top_classes_all_of_them_and_ids(run):
    top = run("predict", "flat.nuptse", "test.csv.gz", "--top", 2, "--id", "id").rows
    assert top[0] == ["id", "label", "probability", "label_1", "probability_1", "label_2", "probability_2"]
    assert top[1][0] == "1"
    assert top[1][1:3] == top[1][3:5]
    full = run("predict", "flat.nuptse", "test.csv.gz", "--proba").rows
    assert full[0] == ["label", "probability", "setosa", "versicolor", "virginica"]
    assert sum(map(float, full[1][2:])) == pytest.approx(1, abs=1e-5)


def test_predict_writes_json_lines(run):
    lines = run("predict", "flat.nuptse", "test.csv.gz", "--json", "--top", 9, "--id", "id").out.splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 75
    assert list(first) == ["row", "id", "label", "probability", "top"]
    assert (first["row"], first["id"], first["label"]) == (1, "1", "setosa")
    assert [one["label"] for one in first["top"]] == ["setosa", "versicolor", "virginica"]
    full = json.loads(run("predict", "flat.nuptse", "test.csv.gz", "--json", "--proba").out.splitlines()[0])
    assert set(full["probabilities"]) == {"setosa", "versicolor", "virginica"}


def test_predict_takes_losses_of_trees(run):
    for loss in ("zero_one", "taxonomic", "parent"):
        labels = [row[0] for row in run("predict", "tree.nuptse", "test.csv.gz", "--loss", loss).rows[1:]]
        with pytest.warns(UserWarning, match="feature names"):
            assert labels == nuptse.load("tree.nuptse").predict(X[1::2], loss=loss).tolist()
    done = run("predict", "flat.nuptse", "test.csv.gz", "--loss", "taxonomic")
    assert done.code == ExitCode.USAGE
    assert "needs a model with a taxonomy" in done.err


def test_predict_takes_raw_text_from_standard_input(run, monkeypatch):
    stdin = SimpleNamespace(buffer=io.BytesIO(b"some cat\n\nan oak\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    done = run("predict", "text.nuptse", "-")
    assert [row[0] for row in done.rows[1::2]] == ["cat", "oak"]
    assert float(done.rows[2][1]) == pytest.approx(0.5, abs=0.01)
    stdin.buffer = io.BytesIO(gzip.compress(b"body,n\nmy oak,1\n"))
    done = run("predict", "text.nuptse", "-", "--format", "csv", "--text", "body")
    assert [row[0] for row in done.rows[1:]] == ["oak"]


def test_labels_in_files_for_training_are_left_out(run):
    done = run("predict", "text.nuptse", "docs.txt")
    assert "begin with labels, which are left out" in done.err
    assert [row[0] for row in done.rows[1:]] == [label for label, _ in DOCUMENTS]


def test_predict_writes_files_whole(run, tmp_path):
    out = tmp_path / "out.tsv"
    assert run("predict", "flat.nuptse", "test.csv.gz", "--out", out).out == ""
    assert out.read_text().count("\n") == 76
    assert run("predict", "flat.nuptse", "test.csv.gz", "--out", out).code == ExitCode.OUTPUT
    assert run("predict", "flat.nuptse", "docs.txt", "--out", tmp_path / "other").code == ExitCode.INPUT
    assert [path.name for path in tmp_path.iterdir()] == ["out.tsv"]


def test_inputs_that_do_not_fit_the_model(run, tmp_path):
    (tmp_path / "less.csv").write_text("sl,sw\n1,2\n")
    (tmp_path / "data.svm").write_text("1 9:1\n")
    for arguments, match in (
        (["flat.nuptse", tmp_path / "less.csv"], "no column 'pl', which the model needs"),
        (["flat.nuptse", "docs.txt"], "takes numbers, but docs.txt has documents"),
        (["flat.nuptse", tmp_path / "data.svm"], "there is a column 9"),
        (["text.nuptse", tmp_path / "data.svm"], "takes documents"),
    ):
        done = run("predict", *arguments)
        assert (done.code, done.out) == (ExitCode.INPUT, "")
        assert match in done.err
    assert run("predict", "text.nuptse", "iris.csv").code == ExitCode.USAGE
    assert run("predict", "flat.nuptse", "iris.csv", "--text", "species").code == ExitCode.USAGE


def test_models_that_were_saved_in_python_work_too(run, tmp_path):
    KernelClassifier(learn=False).fit(X, Y).save(tmp_path / "model")
    np.savez(tmp_path / "data.npz", X=X, y=Y)
    done = run("evaluate", tmp_path / "model", tmp_path / "data.npz", "--json")
    assert json.loads(done.out)["accuracy"] > 0.9
    assert json.loads(run("inspect", tmp_path / "model", "--json").out)["classes"] == [0, 1, 2]
    rows = run("predict", tmp_path / "model", "iris.csv", "--ignore", "id", "--label", "species").rows
    assert rows[1][0] == "0"


def test_svmlight_columns_are_counted_as_in_training(run, tmp_path):
    lines = [
        f"{'ab'[int(y > 0)]} {' '.join(f'{j}:{v}' for j, v in enumerate(x) if v)}" for x, y in zip(X, Y, strict=True)
    ]
    (tmp_path / "train.svm").write_text("\n".join(lines))
    assert run("train", tmp_path / "train.svm", "--out", tmp_path / "model", "--no-learn").code == 0
    (tmp_path / "new.svm").write_text("? 1:3.5 2:1.4\n")
    done = run("predict", tmp_path / "model", tmp_path / "new.svm", "--json")
    clf = nuptse.load(tmp_path / "model")
    assert json.loads(done.out)["probability"] == pytest.approx(clf.predict_proba([[0, 3.5, 1.4, 0]]).max())


# Evaluate


def test_evaluate_prints_scores(run):
    done = run("evaluate", "tree.nuptse", "test.csv.gz")
    assert done.code == 0
    assert "taxonomic loss" in done.out
    content = json.loads(run("evaluate", "tree.nuptse", "test.csv.gz", "--json").out)
    assert set(content) == {
        *("points", "left_out", "accuracy", "log_loss", "reciprocal_rank", "calibration_error", "decisions", "warnings")
    }
    assert set(content["decisions"]) == {"zero_one", "taxonomic", "parent"}
    assert set(content["decisions"]["parent"]) == {"accuracy", "taxonomic_loss", "parent_accuracy"}
    flat = json.loads(run("evaluate", "flat.nuptse", "test.csv.gz", "--json").out)
    with pytest.warns(UserWarning, match="feature names"):
        assert flat["accuracy"] == pytest.approx(nuptse.load("flat.nuptse").score(X[1::2], NAMES[1::2]))


def test_labels_that_are_no_classes(run, tmp_path):
    rows = "sl,sw,pl,pw,species\n5,3,1,0.2,setosa\n6,3,5,2,rough\n6,3,5,2,tulip\n"
    (tmp_path / "data.csv").write_text(rows)
    done = run("evaluate", "tree.nuptse", tmp_path / "data.csv")
    assert done.code == ExitCode.INPUT
    assert "'tulip', on 1 of 3 points" in done.err
    done = run("evaluate", "tree.nuptse", tmp_path / "data.csv", "--skip-unknown", "--json")
    assert json.loads(done.out)["points"] == 1
    assert json.loads(done.out)["left_out"] == 2
    assert "inner node" in done.err
    (tmp_path / "data.csv").write_text("sl,sw,pl,pw,species\n6,3,5,2,rough\n")
    assert run("evaluate", "tree.nuptse", tmp_path / "data.csv").code == ExitCode.INPUT


def test_labels_may_be_in_a_file_of_their_own(run, tmp_path):
    (tmp_path / "docs.txt").write_text("a cat\nan oak\n")
    (tmp_path / "labels.txt").write_text("cat\noak\n")
    arguments = ["evaluate", "text.nuptse", tmp_path / "docs.txt", "--labels", tmp_path / "labels.txt", "--json"]
    assert json.loads(run(*arguments).out)["accuracy"] == 1.0
    assert run(*arguments, "--label", "a").code == ExitCode.USAGE


def test_reports_are_made_by_the_classifier(run, tmp_path, monkeypatch):
    heard = {}

    def report(_, X, y, path=None, **more):
        heard.update(more, shape=X.shape, y=y.tolist())
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write("<html>")

    monkeypatch.setattr(KernelClassifier, "report", report, raising=False)
    page = tmp_path / "report.html"
    done = run("evaluate", "text.nuptse", "docs.txt", "--report", page, "--title", "Cats")
    assert done.code == 0
    assert f"report written to {page}" in done.out
    assert heard["documents"] == [text for _, text in DOCUMENTS]
    assert heard["y"] == [label for label, _ in DOCUMENTS]
    assert heard["title"] == "Cats"
    assert run("evaluate", "text.nuptse", "docs.txt", "--report", page).code == ExitCode.OUTPUT
    assert json.loads(run("evaluate", "flat.nuptse", "test.csv.gz", "--report", page, "--force", "--json").out)[
        "report"
    ]
    assert heard["documents"] is None


# Inspect, demo, help


def test_inspect_shows_what_is_in_a_file(run):
    done = run("inspect", "tree.nuptse")
    for part in ("version 1", f"nuptse {nuptse.__version__}", "RBF", "variance[level 1]", "└── virginica", "points"):
        assert part in done.out
    content = json.loads(run("inspect", "text.nuptse", "--json").out)
    assert content["file_version"] == 1
    assert content["estimator"] == "TextClassifier"
    assert content["trained_on"]["format"] == "text"
    assert content["cv_value"] == pytest.approx(content["cv_log_loss"] * 16)
    tree = json.loads(run("inspect", "tree.nuptse", "--json").out)["tree"]
    assert nuptse.Hierarchy.from_json(json.dumps(tree)) == nuptse.load("tree.nuptse").hierarchy_


def test_inspect_shows_top_words_where_there_are_any(run, monkeypatch):
    def top_features(_, node_or_class=None, n=10, feature_names=None):
        assert node_or_class is None
        one = SimpleNamespace(label="cat", supporting=[(feature_names[i], i, 1.5) for i in range(n)])
        return [one]

    monkeypatch.setattr(KernelClassifier, "top_features", top_features, raising=False)
    words = nuptse.load("text.nuptse").words_
    assert f"cat    {words[0]}, {words[1]}\n" in run("inspect", "text.nuptse", "--top", 2).out
    assert json.loads(run("inspect", "text.nuptse", "--top", 2, "--json").out)["top_features"] == {
        "cat": {words[0]: 1.5, words[1]: 1.5}
    }

    def refuse(*_, **__):
        raise ValueError("only linear kernels")

    monkeypatch.setattr(KernelClassifier, "top_features", refuse, raising=False)
    assert json.loads(run("inspect", "flat.nuptse", "--json").out)["top_features"] is None


def test_long_lists_are_cut_unless_asked_for(run, tmp_path):
    lines = "".join(f"{i % 40 // 20}/{i % 40}\tword{i % 40}\n" for i in range(80))
    (tmp_path / "docs.txt").write_text(lines)
    arguments = ["train", tmp_path / "docs.txt", "--labels-are-paths", "--no-learn", "--out", tmp_path / "model"]
    assert run(*arguments).code == 0
    assert "--tree shows them" in run("inspect", tmp_path / "model").out
    assert "└── 39" in run("inspect", tmp_path / "model", "--tree").out


def test_demo_needs_no_file(run):
    content = json.loads(run("demo", "--json").out)
    assert [one["tree"] for one in content["runs"]] == [False, False, False, True]
    assert all(one["accuracy"] > 0.5 for one in content["runs"])


def test_help_tells_exit_codes(capsys):
    assert set(MEANINGS) == set(ExitCode)
    for arguments in (["--help"], *([name, "--help"] for name in COMMANDS)):
        assert main(arguments) == 0
        assert "141  whoever read the output went away" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert nuptse.__version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train"],
        ["train", "a.csv"],
        ["train", "a", "--out", "b"],
        ["train", "-", "--out", "b"],
        ["train", "a.csv", "--out", "b", "--folds", "1"],
        ["train", "a.csv", "--out", "b", "--seed", "-1"],
        ["train", "a.csv", "--out", "b", "--variance", "nan"],
        ["train", "a.csv", "--out", "b", "--variance", "0"],
        ["train", "a.csv", "--out", "b", "--memory-limit", "lots"],
        ["train", "a.csv", "--out", "b", "--where", "split"],
        ["train", "a.csv", "--out", "b", "--names", "code"],
        ["train", "a.csv", "--out", "b", "--taxonomy", "t.csv", "--labels-are-paths"],
        ["predict", "m", "d", "--proba", "--top", "3"],
    ],
)
def test_wrong_usage_is_told(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == ExitCode.USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_sizes_are_read_as_people_write_them():
    def size(text):
        return parser().parse_args(["train", "a.csv", "--out", "m", "--memory-limit", text]).memory_limit

    assert [size(text) for text in ("4G", "4gb", "1.5 MiB", "100")] == [4 * 1024**3, 4 * 1024**3, 1536 * 1024, 100]


# Wrong files


def test_model_files_have_an_exit_code_of_their_own(run, folder, tmp_path):
    whole = (folder / "flat.nuptse").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-3])
    (tmp_path / "changed").write_bytes(whole[:-3] + b"abc")
    for model in (tmp_path / "cut", tmp_path / "changed", "iris.csv", "missing", ".", "-"):
        for command in (["inspect", model], ["predict", model, "iris.csv"], ["evaluate", model, "iris.csv"]):
            done = run(*command)
            assert (done.code, done.out) == (ExitCode.MODEL, "")
            assert done.err.startswith("nuptse: error: ")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=100), command=st.sampled_from(["train", "predict", "evaluate", "model", "taxonomy"]))
def test_hostile_files_give_one_line(run, tmp_path, content, command):
    path = tmp_path / "hostile.csv"
    path.write_bytes(content)
    arguments = {
        "train": ["train", path, "--out", tmp_path / "out", "--no-learn"],
        "predict": ["predict", "flat.nuptse", path],
        "evaluate": ["evaluate", "tree.nuptse", path],
        "model": ["inspect", path],
        "taxonomy": ["train", "iris.csv", "--label", "species", "--taxonomy", path, "--out", tmp_path / "out"],
    }
    done = run(*arguments[command])
    assert done.code in {ExitCode.INPUT, ExitCode.MODEL, ExitCode.USAGE}
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_mistakes_of_our_own_are_told_without_a_traceback(run, monkeypatch, capsys):
    def break_down(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setitem(COMMANDS, "inspect", break_down)
    done = run("inspect", "flat.nuptse")
    assert done.code == ExitCode.INTERNAL
    assert "please report it: ZeroDivisionError: oops" in done.err
    assert main(["inspect", "flat.nuptse", "--debug"]) == ExitCode.INTERNAL
    assert "Traceback" in capsys.readouterr().err


# The page about it


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "nuptse"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nuptse "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    namespace, out = {}, ""
    for kind, code in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL):
        if kind == "python":
            exec(compile(code, str(PAGE), "exec"), namespace)  # noqa: S102
        elif kind == "text":
            assert [line.split()[:-1] for line in code.splitlines()] == [line.split()[:-1] for line in out.splitlines()]
        for line in code.splitlines() if kind == "sh" else []:
            if line == "nuptse demo":  # has a test of its own
                continue
            if line.startswith("nuptse "):  # the others need a shell
                assert main(shlex.split(line)[1:]) == 0, line
            else:
                subprocess.run(["sh", "-ec", line], check=True, timeout=60)  # noqa: S607
            out = capsys.readouterr().out


def test_the_page_has_the_exit_codes():
    for code, meaning in MEANINGS.items():
        assert f"| {code.value} | {meaning} |" in PAGE.read_text("utf-8")


# Processes


def test_it_is_a_program(folder):
    done = start("predict", folder / "text.nuptse", "-", "--json", stdin=subprocess.PIPE)
    out, err = done.communicate("an oak\n", timeout=60)
    assert (done.returncode, err) == (0, "")
    assert json.loads(out)["label"] == "oak"
    done = start("inspect", folder / "missing")
    out, err = done.communicate(timeout=60)
    assert (done.returncode, out) == (ExitCode.MODEL, "")
    assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="other pipes there")
def test_a_reader_that_goes_away_is_no_error(folder, tmp_path):
    (tmp_path / "many.txt").write_text("some cat\n" * 20_000)
    done = start("predict", folder / "text.nuptse", tmp_path / "many.txt", "--proba")
    assert done.stdout.readline() == "label\tprobability\tcat\toak\n"
    done.stdout.close()
    assert done.stderr.read() == ""
    done.stderr.close()
    assert done.wait(60) == ExitCode.PIPE


@pytest.mark.skipif(sys.platform == "win32", reason="other signals there")
def test_ctrl_c_ends_training_and_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", X=rng.normal(size=(1500, 20)), y=rng.integers(0, 8, size=1500))
    out = tmp_path / "model"
    done = start("train", tmp_path / "data.npz", "--out", out, "--verbose", "--threads", 1)
    assert done.stderr.readline().startswith("reading")
    assert any(line.startswith("evaluation") for line in done.stderr)
    os.kill(done.pid, signal.SIGINT)
    _, err = done.communicate(timeout=60)
    assert done.returncode == ExitCode.INTERRUPTED
    assert "interrupted; nothing was written" in err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]
