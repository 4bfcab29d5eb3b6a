"""Reports: what is on the page is what the scores say, nothing gets in that should not, and nothing is fetched."""

import html
import json
import re
import warnings
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from conftest import make_blobs
from nuptse import Hierarchy, KernelClassifier, OneVsRestKernelClassifier, metrics
from nuptse._report.icicle import shade
from nuptse._report.markup import number, share
from nuptse._tree_errors import shares_and_errors
from nuptse.datasets import make_taxonomy
from nuptse.report import make_report

VOID = {"meta", "wbr"}
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "\"><script>alert('x')</script>",
    "' onmouseover='alert(1)",
    "<!-- ]]> &lt; \u2028 \u202e right to left",
    "\x00 and \ud800 alone",
    "a/" * 80,
]


class Page(HTMLParser):
    """The elements of a page, in their order; every one that is opened must be closed."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self.scripts = [], [], [], []
        self.scores = []
        self.open = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend((tag, *attribute) for attribute in attrs)
        values = dict(attrs)
        if tag == "data":
            name = next((one["data-score"] for _, one in reversed(self.open) if "data-score" in one), None)
            self.scores.append((name, float(values["value"])))
        if tag == "script":
            self.scripts.append((values.get("id"), ""))
        if tag not in VOID:
            self.open.append((tag, values))

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend((tag, *attribute) for attribute in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.open and self.open[-1][0] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def data(self, identifier):
        return json.loads(dict(self.scripts)[identifier])


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call()


@pytest.fixture(scope="module")
def flat():
    """Return a model of three classes, and points to try it on."""
    X, y = make_blobs(np.random.default_rng(1), 150, 3, 3)
    labels = np.array(["ant", "bee", "cat"])[y]
    clf = KernelClassifier(max_evaluations=4, random_state=0)
    return quietly(lambda: clf.fit(X[:90], labels[:90])), X[90:], labels[90:]


@pytest.fixture(scope="module")
def tree():
    """Return a model of a tree, and documents to try it on."""
    documents = make_taxonomy(400, n_classes=24, n_words=400, words_per_document=25, topic_share=0.4, random_state=0)
    clf = KernelClassifier("linear", hierarchy=documents.hierarchy, scale="auto", learn=False)
    clf.fit(documents.data[:200], documents.target[:200])
    return clf, documents.data[200:], documents.target[200:]


def expected_scores(clf, X, y, weights=None):
    proba, found = clf.predict_proba(X), {"sample_weight": weights}
    of_columns = {"labels": clf.classes_, **found}
    scores = {
        "accuracy": metrics.accuracy(y, clf.predict(X), **found),
        "log_loss": metrics.log_loss(y, proba, **of_columns),
        "reciprocal_rank": metrics.reciprocal_rank(y, proba, **of_columns),
        "calibration_error": metrics.reliability(y, proba, **of_columns).error,
    }
    if getattr(clf, "hierarchy_", None) is not None:
        for loss, suffix in (("zero_one", ""), ("taxonomic", "[taxonomic]"), ("parent", "[parent]")):
            decided = clf.predict(X, loss=loss)
            in_tree = {"hierarchy": clf.hierarchy_, **found}
            scores[f"accuracy{suffix}"] = metrics.accuracy(y, decided, **found)
            scores[f"taxonomic_loss{suffix}"] = metrics.taxonomic_loss(y, decided, **in_tree)
            scores[f"parent_accuracy{suffix}"] = metrics.parent_accuracy(y, decided, **in_tree)
    return scores


# Numbers


@pytest.mark.parametrize("kind", ["flat", "tree"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_metrics(kind, weighted, rng, request):
    clf, X, y = request.getfixturevalue(kind)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    report = clf.report(X, y, sample_weight=weights)
    assert report.scores == pytest.approx(expected_scores(clf, X, y, weights), rel=1e-12)


@pytest.mark.parametrize("kind", ["flat", "tree"])
def test_the_page_has_every_score_to_the_last_digit(kind, request):
    clf, X, y = request.getfixturevalue(kind)
    report = clf.report(X, y)
    shown = {}
    for name, value in Page(report.html).scores:
        if name is not None:
            assert shown.setdefault(name, value) == value
    assert shown == report.scores


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_a_weight_counts_as_so_many_points(flat, seed):
    clf, X, y = flat
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    weights[0] = 1
    weighted = clf.report(X, y, sample_weight=weights)
    counted = clf.report(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.scores == pytest.approx(counted.scores)
    assert matrix_of(weighted) == matrix_of(counted)


def matrix_of(report):
    found = re.search(r'<table class="matrix">.*?</table>', report.html, re.DOTALL).group()
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", found)
    return [[cell.replace("·", "0") for cell in re.findall(r"<td[^>]*>([^<]*)</td>", row)] for row in rows]


def test_the_matrix_counts_predictions(flat):
    clf, X, y = flat
    predicted = clf.predict(X)
    expected = [[str(((y == one) & (predicted == other)).sum()) for other in clf.classes_] for one in clf.classes_]
    assert matrix_of(clf.report(X, y)) == expected


def test_the_same_twice_gives_the_same_page(tree):
    clf, X, y = tree
    assert clf.report(X, y).html == clf.report(X, y).html


def test_the_tree_has_the_errors_of_every_branch(tree):
    clf, X, y = tree
    data = Page(clf.report(X, y).html).data("icicle-data")
    shares, errors = shares_and_errors(clf.hierarchy_, y, clf.predict(X), None)
    paths = [()]
    for parent, name in zip(data["parents"][1:], data["names"][1:], strict=True):
        paths.append((*paths[parent], name))
    node_of = {path: node for node, path in enumerate(clf.hierarchy_.paths)}
    for i, path in enumerate(paths):
        node = node_of[path]
        assert data["weights"][i] == pytest.approx(shares[node] * len(y))
        if data["weights"][i]:
            assert data["outside"][i] == pytest.approx(errors[node] * data["weights"][i])
        # What goes elsewhere goes to other nodes of the same level.
        places, weights = data["destinations"][i][::2], data["destinations"][i][1::2]
        assert sum(weights) <= data["outside"][i]
        assert weights == sorted(weights, reverse=True)
        assert all(len(paths[place]) == len(path) and place != i for place in places)
    assert data["names"][0] == "All points"
    assert sum(1 for weight in data["weights"] if weight) == (shares > 0).sum()


def test_destinations_are_where_predictions_went():
    hierarchy = Hierarchy.parse({"animal": ["cat", "dog"], "plant": {"tree": ["oak", "elm"], "moss": None}})
    clf = Oracle(hierarchy)
    y = np.array(["cat", "cat", "cat", "oak", "oak", "moss"])
    clf.says = ["dog", "oak", "oak", "elm", "moss", "oak"]
    data = Page(make_report(clf, np.zeros((6, 1)), y).html).data("icicle-data")
    names = data["names"]
    placed = {
        names[i]: [(names[place], count) for place, count in zip(found[::2], found[1::2], strict=True)]
        for i, found in enumerate(data["destinations"])
        if found
    }
    assert placed == {
        "animal": [("plant", 2)],
        "cat": [("tree", 2), ("dog", 1)],
        "tree": [("moss", 1)],
        "moss": [("tree", 1)],
        "oak": [("moss", 1), ("elm", 1)],
    }


class Oracle(BaseEstimator):
    """A classifier that says what it is told to."""

    def __init__(self, hierarchy=None, classes=None):
        self.hierarchy_ = hierarchy
        self.classes_ = np.array(hierarchy.classes if classes is None else classes)
        self.says = []

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict_proba(self, X):
        proba = np.full((len(X), len(self.classes_)), 0.2 / (len(self.classes_) - 1))
        for row, label in zip(proba, self.says, strict=True):
            row[self.classes_.tolist().index(label)] = 0.8
        return proba


def test_the_hardest_come_first_with_their_most_probable_classes(tree):
    clf, X, y = tree
    proba = clf.predict_proba(X)
    place = {label: column for column, label in enumerate(clf.classes_.tolist())}
    of_truth = np.array([proba[i, place[label]] for i, label in enumerate(y.tolist())])
    hardest = np.argsort(of_truth, kind="stable")[:20]
    page = clf.report(X, y).html
    cards = re.findall(r"<article><h3>Row (\d+) (.*?)</article>", page, re.DOTALL)
    assert [int(row) for row, _ in cards] == hardest.tolist()
    for row, card in cards:
        top = clf.classes_[np.argsort(-proba[int(row)], kind="stable")[:5]].tolist()
        named = [html.unescape(name).replace("<wbr>", "") for name in re.findall(r"<bdi>(.*?)</bdi>", card)]
        assert named == (top if y[int(row)] in top else [*top, y[int(row)]])
        values = [float(value) for value in re.findall(r'<data value="(.*?)"', card)]
        np.testing.assert_allclose(values, [proba[int(row), place[name]] for name in named])


def test_documents_are_shown_where_they_are_given(tree):
    clf, X, y = tree
    texts = [f"text of document {i}" for i in range(len(y))]
    page = Page(clf.report(X, y, documents=texts).html)
    hardest = int(re.search(r"Row (\d+)", page.text).group(1))
    assert texts[hardest] in page.text
    assert "Hardest documents" in page.text
    assert "All documents" in page.data("icicle-data")["names"][0]


def test_long_documents_are_folded(flat):
    clf, X, y = flat
    page = clf.report(X, y, documents=["word " * 5000] * len(y)).html
    assert '<details class="document"' in page
    assert len(page) < 300_000


def test_history_and_hyperparameters_are_shown(flat):
    clf, X, y = flat
    page = Page(clf.report(X, y).html)
    drawn = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert any(label.startswith("Ψ: ") for label in drawn)
    for name, value in clf.hyperparameters_.items():
        assert name in page.text
        assert (None, value) in page.scores


def test_variances_of_levels_are_on_one_scale(tree):
    clf, X, y = tree
    page = clf.report(X, y).html
    rows = re.findall(r'<th scope="row"><bdi>(level \d)</bdi></th>.*?<data value="(.*?)"', page, re.DOTALL)
    assert {name: float(value) for name, value in rows} == {
        f"level {level}": clf.hyperparameters_[f"variance[level {level}]"] for level in (1, 2, 3)
    }
    assert "were given, not learned" in page


# Any classifier


def test_one_model_for_every_class_has_a_report(rng):
    X, y = make_blobs(rng, 60, 2, 3)
    model = OneVsRestKernelClassifier(KernelClassifier(max_evaluations=3, random_state=0))
    quietly(lambda: model.fit(X, y))
    report = model.report(X, y)
    assert report.scores == pytest.approx(expected_scores(model, X, y))
    for label in ("Ψ[0]", "Ψ[2]", "variance[1]", "inverse_width[1]"):
        assert label in report.html


def test_any_classifier_with_probabilities_will_do(rng):
    X, y = make_blobs(rng)
    model = LogisticRegression().fit(X, y)
    report = make_report(model, X, y)
    assert report.scores == pytest.approx(expected_scores(model, X, y))
    with pytest.raises(TypeError, match="RidgeClassifier gives no probabilities"):
        make_report(RidgeClassifier().fit(X, y), X, y)


@pytest.mark.parametrize("count", [2, 12, 13, 25, 26, 60])
def test_any_number_of_classes(count):
    clf = Oracle(classes=np.arange(count))
    y = np.arange(count).repeat(2)
    clf.says = [*y[1:], y[0]]
    page = Page(make_report(clf, np.zeros((len(y), 1)), y).html)
    assert ("Confusion matrix" in page.text) == (count <= 25)


def test_one_point_and_no_errors_will_do():
    clf = Oracle(Hierarchy.parse({"a": ["b", "c"], "d": None}))
    clf.says = ["d"]
    report = make_report(clf, np.zeros((1, 1)), ["d"])
    assert report.scores["accuracy"] == 1
    assert "every prediction is right" in Page(report.html).text


def test_labels_may_be_paths(rng):
    X, y = make_blobs(rng, 60, 2, 3)
    paths = np.array([("a", "x"), ("a", "y"), ("b", "x")], dtype=object)[y]
    clf = KernelClassifier(hierarchy=Hierarchy.from_paths(paths), learn=False).fit(X, paths)
    report = clf.report(X, paths)
    assert report.scores["accuracy"] == clf.score(X, paths)
    assert "a / x" in Page(report.html).text


def test_many_classes_and_points_make_a_page_of_bearable_size():
    documents = make_taxonomy(3000, n_classes=5000, n_levels=4, n_words=50, words_per_document=1, random_state=0)
    clf = Oracle(documents.hierarchy)
    clf.hyperparameters_ = {f"variance[{label}]": 1.0 + i for i, label in enumerate(clf.classes_.tolist())}
    y = documents.target[:2000]
    clf.says = np.where(np.arange(2000) % 3, y, np.roll(y, 1)).tolist()
    for hierarchy in (documents.hierarchy, None):
        clf.hierarchy_ = hierarchy
        report = make_report(clf, np.zeros((2000, 1)), y, documents=["word " * 2000] * 2000)
        assert len(report.html.encode()) < 2_000_000
        Page(report.html)


# Nothing gets in, and nothing is fetched


def hostile_report():
    hierarchy = Hierarchy.parse({HOSTILE[0]: HOSTILE[1:3], HOSTILE[3]: HOSTILE[4:]})
    clf = Oracle(hierarchy)
    clf.hyperparameters_ = {f"variance[{label}]": 1.0 + i for i, label in enumerate(HOSTILE)}
    clf.history_ = [
        {"evaluation": i, "value": 3.0 - i, "hyperparameters": dict(clf.hyperparameters_)} for i in range(1, 4)
    ]
    y = [*clf.classes_.tolist()] * 3
    clf.says = [*y[1:], y[0]]
    documents = [HOSTILE[i % len(HOSTILE)] * (1 + 30 * (i % 2)) for i in range(len(y))]
    return clf, y, make_report(clf, np.zeros((len(y), 1)), y, documents=documents, title=HOSTILE[0])


@pytest.mark.parametrize("in_tree", [True, False])
def test_hostile_labels_stay_text(in_tree):
    clf, y, report = hostile_report()
    if not in_tree:
        clf.hierarchy_ = None
        report = make_report(clf, np.zeros((len(y), 1)), y, documents=y, title=HOSTILE[0])
    page = Page(report.html)
    assert not {"img", "iframe", "object", "a"} & set(page.tags) - {"a"}
    assert [identifier for identifier, _ in page.scripts] == ["icicle-data", None][not in_tree :]
    assert not [one for one in page.attributes if one[1].startswith("on")]
    assert HOSTILE[0] in page.text
    assert "\x00" not in report.html
    report.html.encode("utf-8")


def test_hostile_labels_stay_text_in_notebooks_too():
    _, _, report = hostile_report()
    frame = Page(report._repr_html_())
    assert frame.tags == ["iframe"]
    values = {name: value for _, name, value in frame.attributes}
    assert values["srcdoc"] == report.html
    assert values["sandbox"] == "allow-scripts"


@pytest.mark.parametrize("kind", ["flat", "tree"])
def test_the_page_asks_for_nothing_else(kind, request):
    clf, X, y = request.getfixturevalue(kind)
    content = clf.report(X, y).html
    assert set(re.findall(r"https?://[^\"'\s<)]*", content)) <= {"http://www.w3.org/2000/svg"}
    page = Page(content)
    assert all(value.startswith("#") for _, name, value in page.attributes if name in {"href", "src"})
    assert not re.search(r"@import|url\(", content)
    assert not {"link", "img", "iframe"} & set(page.tags)


def test_links_lead_somewhere_and_names_are_unique(tree):
    clf, X, y = tree
    page = Page(clf.report(X, y).html)
    names = [value for _, name, value in page.attributes if name == "id"]
    assert len(names) == len(set(names))
    for _, name, value in page.attributes:
        if name == "href":
            assert value[1:] in names
        if name == "aria-labelledby":
            assert value in names


# Files


def test_the_page_is_written_where_it_is_asked_for(flat, tmp_path):
    clf, X, y = flat
    report = clf.report(X, y, tmp_path / "report.html", title="Mine")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    assert "<title>Mine</title>" in report.html
    report.save(str(tmp_path / "again.html"))
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "report.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.html", "report.html"]
    assert "accuracy" in repr(report)


def test_a_page_that_cannot_be_written_leaves_the_last_one(flat, tmp_path, monkeypatch):
    clf, X, y = flat
    target = tmp_path / "report.html"
    target.write_text("last")
    report = clf.report(X, y)

    def fails(*_):
        raise OSError("no room")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="no room"):
        report.save(target)
    assert target.read_text() == "last"
    assert list(tmp_path.iterdir()) == [target]


def test_places_for_no_file_are_refused_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        make_report(None, None, None, tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match=r"report\.html"):
        make_report(None, None, None, tmp_path)


# What cannot be reported


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": ["ant"]}, ValueError, "y has 1 labels, but X has 60 rows"),
        ({"y": ["dog"] * 60}, ValueError, "'dog', which the classifier does not know"),
        ({"sample_weight": [1.0]}, ValueError, r"sample_weight has shape \(1,\)"),
        ({"sample_weight": [-1.0] * 60}, ValueError, "not below 0"),
        ({"sample_weight": [0.0] * 60}, ValueError, "not all 0"),
        ({"sample_weight": [np.nan] * 60}, ValueError, "finite"),
        ({"documents": ["one"]}, ValueError, "documents has 1 texts, but X has 60 rows"),
        ({"documents": "one"}, TypeError, "one for every row"),
        ({"X": np.zeros((60, 2))}, ValueError, "features"),
        ({"X": np.full((60, 3), np.nan)}, ValueError, "NaN"),
    ],
)
def test_what_does_not_fit_is_refused(flat, change, error, message, tmp_path):
    clf, X, y = flat
    arguments = {"X": X, "y": y, "path": tmp_path / "report.html"} | change
    with pytest.raises(error, match=message):
        clf.report(**arguments)
    assert not list(tmp_path.iterdir())


def test_inner_nodes_are_refused_by_name(tree):
    clf, X, y = tree
    inner = y.astype(object)
    inner[3] = "1"
    with pytest.raises(ValueError, match=r"label '\d', which is an inner node"):
        clf.report(X, inner)
    with pytest.raises(ValueError, match="unknown label 'nowhere'"):
        clf.report(X, ["nowhere"] * len(y))


def test_a_model_that_is_not_fitted_has_no_report(flat):
    _, X, y = flat
    with pytest.raises(NotFittedError):
        KernelClassifier().report(X, y)


# Manners of the page


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (1234.5678, "1,235"),
        (0.0012345, "0.00123"),
        (0.00012345, "1.23 × 10⁻⁴"),
        (5e-324, "4.94 × 10⁻³²⁴"),
        (1e-7, "10⁻⁷"),
        (-2.5e9, "−2.5 × 10⁹"),
        (99999.6, "10⁵"),
        (0.1, "0.1"),
        (np.nan, "–"),
        (np.inf, "∞"),
    ],
)
def test_numbers_are_written_for_people(value, written):
    assert number(value) == written


@given(st.floats(1e-300, 1e300) | st.floats(-1e300, -1e-300))
@settings(deadline=None)
def test_written_numbers_are_near_what_they_stand_for(value):
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
    plain = number(value).translate(digits).replace(",", "").replace(" × 10", "e")
    plain = re.sub(r"^10(?=[-0-9]+$)", "1e", plain) if abs(value) < 1e-4 or abs(value) >= 99_950 else plain
    assert float(plain) == pytest.approx(value, rel=0.006)


@given(st.floats(0, 1))
@settings(deadline=None)
def test_colours_grow_with_errors(error):
    assert 0 <= shade(error) <= 7
    assert shade(error) <= shade(min(error + 0.1, 1))
    assert (shade(error) == 0) == (error == 0)
    assert share(error).endswith("%")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_what_is_behind_them(scheme):
    style = resources.files("nuptse._report").joinpath("page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): ([^;]+);", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): ([^;]+);", dark))
    pairs = [(f"t{i}", f"e{i}") for i in range(8)]
    pairs += [(ink, paper) for ink in ("ink", "muted", "accent") for paper in ("page", "surface")]
    pairs += [("good", "good-soft"), ("muted", "soft")]
    for ink, paper in pairs:
        found = colours[ink]
        found = colours[found[6:-1]] if found.startswith("var(") else found
        high, low = sorted([luminance(found), luminance(colours[paper])], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)
