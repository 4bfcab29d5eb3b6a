"""Text classifiers: words are counted, learned from, and kept in files."""

import json
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold, cross_val_score

import nuptse
from nuptse import KernelClassifier, TextClassifier
from nuptse.kernels import Linear

TEXTS = ["a cat purrs", "the cat sleeps", "an oak grows", "the oak stands", "moss grows", "green moss"] * 3
LABELS = ["cat", "cat", "oak", "oak", "moss", "moss"] * 3
TREE = {"animal": ["cat"], "plant": ["oak", "moss"]}
FIXED = KernelClassifier("linear", scale="auto", learn=False)


@pytest.fixture(scope="module")
def fitted():
    return TextClassifier(FIXED, hierarchy=TREE).fit(TEXTS, LABELS)


def test_it_is_a_vectoriser_and_a_classifier():
    clf = TextClassifier().fit(TEXTS, LABELS)
    words = TfidfVectorizer(sublinear_tf=True, norm=None)
    X = words.fit_transform(TEXTS)
    other = KernelClassifier("linear", scale="auto", folds=3).fit(X, LABELS)
    np.testing.assert_array_equal(clf.predict_proba(TEXTS), other.predict_proba(X))
    assert clf.words_ == words.get_feature_names_out().tolist() == clf.get_feature_names_out().tolist()
    assert clf.score(TEXTS, LABELS) == 1.0
    assert clf.classes_.tolist() == ["cat", "moss", "oak"]
    assert clf.hierarchy_ is None


def test_trees_and_losses_work(fitted):
    assert fitted.hierarchy_.n_levels == 2
    assert fitted.predict(["some cat", "one oak"], loss="taxonomic").tolist() == ["cat", "oak"]
    assert fitted.node_proba(["cat"]).shape == (1, 6)
    assert fitted.decision_function(["cat"]).shape == (1, 3)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(["cat"])), fitted.predict_proba(["cat"]))


def test_documents_without_known_words_have_probabilities_too(fitted):
    proba = fitted.predict_proba(["", "zzz"])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(proba[0], proba[1])


@pytest.mark.parametrize("weighting", ["tf-idf", "log", "counts"])
def test_a_model_comes_back_with_its_words(weighting, tmp_path):
    clf = TextClassifier(FIXED, weighting=weighting, ngram_range=(1, 2), stop_words=["the"], strip_accents="unicode")
    clf.fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    back = nuptse.load(tmp_path / "model")
    assert isinstance(back, TextClassifier)
    assert repr(back) == repr(clf)
    assert back.words_ == clf.words_
    new = ["a cat sleeps", "The Öak", "", "zzz"]
    np.testing.assert_array_equal(back.predict_proba(new), clf.predict_proba(new))
    again = back.fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))


def test_files_hold_a_tree_and_all_attributes(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    back = nuptse.load(tmp_path / "model")
    assert back.hierarchy_ == fitted.hierarchy_
    assert back.classifier_.hyperparameters_ == fitted.classifier_.hyperparameters_
    assert back.classifier_.fit_info_ == fitted.classifier_.fit_info_
    assert back.predict(TEXTS, loss="parent").tolist() == fitted.predict(TEXTS, loss="parent").tolist()


def test_pickle_keeps_it(fitted):
    back = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(back.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_what_a_file_cannot_keep_is_said(tmp_path):
    clf = TextClassifier(KernelClassifier("linear", learn=False, folds=KFold(3))).fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match="classifier__folds cannot be kept"):
        clf.save(tmp_path / "model")
    assert nuptse.load(tmp_path / "model").classifier.folds == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda notes: notes["fitted"].update(words_=["a"]),
        lambda notes: notes["fitted"]["words_"].__setitem__(0, notes["fitted"]["words_"][1]),
        lambda notes: notes["fitted"]["words_"].__setitem__(0, 3),
        lambda notes: notes["fitted"].pop("words_"),
        lambda notes: notes["fitted"].update(idf_=None),
        lambda notes: notes["fitted"].pop("classifier_"),
        lambda notes: notes["fitted"].update(word_counts_={"mapping": []}),
        lambda notes: notes["fitted"]["word_counts_"]["mapping"].append(["analyzer", "os.system"]),
        lambda notes: notes["fitted"]["classifier_"].update(estimator="Popen"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(fitted, tmp_path, change):
    path = tmp_path / "model"
    fitted.save(path)
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    notes = json.loads(json.loads(header["__metadata__"]["nuptse"])["header"]["notes"])
    change(notes)
    fitted.classifier_._model.save(str(path), json.dumps(notes))
    with pytest.raises(ValueError, match="damaged"):
        nuptse.load(path)


def test_bad_texts_are_refused_and_change_nothing(fitted):
    before = fitted.predict_proba(TEXTS)
    with pytest.raises(TypeError, match="one string"):
        fitted.fit("a cat", ["cat"])
    with pytest.raises(TypeError, match="document 1 is None"):
        fitted.fit(["a cat", None], ["cat", "oak"])
    with pytest.raises(ValueError, match="2 documents, but 1 labels"):
        fitted.fit(["a cat", "b"], ["cat"])
    with pytest.raises(ValueError, match="no words can be counted"):
        fitted.fit(["", "."], ["cat", "oak"])
    with pytest.raises(ValueError, match="unknown label"):
        fitted.fit(TEXTS, ["dog"] * len(TEXTS))
    np.testing.assert_array_equal(fitted.predict_proba(TEXTS), before)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"weighting": "bm25"}, "unknown weighting"),
        ({"analyzer": len}, "unknown analyzer"),
        ({"ngram_range": (2, 1)}, "in order"),
        ({"ngram_range": 2}, "pair of whole numbers"),
        ({"stop_words": "german"}, "stop_words"),
        ({"min_df": "a"}, "min_df"),
        ({"max_features": 0}, "max_features"),
        ({"hierarchy": TREE, "classifier": KernelClassifier(hierarchy=TREE)}, "both"),
    ],
)
def test_settings_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        TextClassifier(**options).fit(TEXTS, LABELS)


def test_it_has_the_manners_of_scikit_learn():
    clf = TextClassifier(FIXED, min_df=2)
    assert clone(clf).get_params()["classifier__learn"] is False
    assert cross_val_score(clf, np.array(TEXTS), LABELS, cv=3).mean() > 0.9
    assert not hasattr(clf, "classes_")
    for method in (clf.predict, clf.predict_proba, clf.transform):
        with pytest.raises(NotFittedError):
            method(["a"])
    with pytest.raises(NotFittedError):
        clf.save("nowhere")
    weights = np.where(np.array(LABELS) == "cat", 0.0, 1.0)
    weighted = clone(clf).fit(TEXTS, LABELS, weights, groups=np.arange(len(TEXTS)))
    assert weighted.predict_proba(["cat"])[0, 0] < 0.3


def test_groups_by_frequency_take_matrices_as_vectorisers_make_them():
    X = TfidfVectorizer(use_idf=False).fit_transform(TEXTS)
    options = {"scale": "auto", "learn": False}
    of_matrix = KernelClassifier(Linear(groups="frequency"), **options).fit(scipy.sparse.csr_matrix(X), LABELS)
    of_array = KernelClassifier(Linear(groups="frequency"), **options).fit(scipy.sparse.csr_array(X), LABELS)
    np.testing.assert_array_equal(of_matrix.predict_proba(X), of_array.predict_proba(X))


def test_reports_and_top_features_go_to_the_classifier(fitted, monkeypatch):
    heard = []

    def report(_, X, y, path=None, **more):
        heard.append((X.shape, y, path, more))

    monkeypatch.setattr(KernelClassifier, "report", report, raising=False)
    monkeypatch.setattr(KernelClassifier, "top_features", lambda *more: more[1:], raising=False)
    fitted.report(TEXTS[:2], LABELS[:2], "page.html", title="T")
    shape, labels, path, more = heard[0]
    assert shape == (2, len(fitted.words_))
    assert (labels, path) == (LABELS[:2], "page.html")
    assert more == {"sample_weight": None, "documents": TEXTS[:2], "title": "T"}
    assert fitted.top_features("cat", 3) == ("cat", 3, fitted.words_)


def test_no_words_stand_in_for_code(fitted, tmp_path):
    """What a file holds of a vectoriser are words and plain settings."""
    fitted.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert not re.search(rb"sklearn|token_pattern|__reduce__|pickle", content)
