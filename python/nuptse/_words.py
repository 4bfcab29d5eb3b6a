"""Counts of words: scikit-learn's vectorisers, made from plain settings and words that a file can keep."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

_WEIGHTINGS = ("tf-idf", "log", "counts")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "weighting": _WEIGHTINGS,
    "analyzer": ("word", "char", "char_wb"),
    "lowercase": (True, False),
    "strip_accents": (None, "ascii", "unicode"),
}


def as_documents(texts: Iterable[str]) -> list[str]:
    """Return documents as a list; raise for what is no string."""
    if isinstance(texts, str | bytes):
        raise TypeError("texts is one string, but must be a list of documents; for one document use [text]")
    documents = list(texts)
    for number, text in enumerate(documents):
        if not isinstance(text, str):
            raise TypeError(f"document {number} is {text!r}, but must be a string")
    return documents


class WordCounts:
    """Turns documents into rows of weighted counts.

    Parameters
    ----------
    settings : dict
        By name: weighting, ngram_range, analyzer, lowercase, strip_accents, stop_words, min_df, max_df, max_features.
    words : list of str, default=None
        The words in the order of the columns, where they are known.
    idf : ndarray, default=None
        Their inverse document frequencies, where these count.

    """

    def __init__(self, settings: Mapping[str, Any], words: list[str] | None = None, idf: Any = None) -> None:
        self.settings = dict(settings)
        self.words: list[str] = []
        self.idf: NDArray[np.float64] | None = None
        _check(self.settings)
        if words is not None:
            self._vectorizer = self._known(words, idf)

    def fit(self, documents: list[str]) -> Any:
        """Learn the words, and return the rows."""
        self._vectorizer = self._new()
        try:
            X = self._vectorizer.fit_transform(documents)
        except ValueError as error:  # "empty vocabulary", "no terms remain", whose advice is about other parameters
            raise ValueError(f"no words can be counted: {error}") from error
        self.words = self._vectorizer.get_feature_names_out().tolist()
        self.idf = self._vectorizer.idf_ if self.settings["weighting"] == "tf-idf" else None
        return X

    def transform(self, documents: list[str]) -> Any:
        """Return the rows."""
        return self._vectorizer.transform(documents)

    def _new(self, words: dict[str, int] | None = None) -> Any:
        options = {name: value for name, value in self.settings.items() if name != "weighting"}
        options["ngram_range"] = tuple(options["ngram_range"])
        if words is not None:
            options |= {"vocabulary": words, "min_df": 1, "max_df": 1.0, "max_features": None}
        weighting = self.settings["weighting"]
        if weighting == "counts":
            return CountVectorizer(dtype=np.float64, **options)
        # The norm of the rows is for the classifier to set, which does so for all sparse inputs. A vectoriser of known
        # words takes no weights for granted, so that those without any are given ones.
        use_idf = weighting == "tf-idf" or words is not None
        return TfidfVectorizer(norm=None, sublinear_tf=True, use_idf=use_idf, **options)

    def _known(self, words: list[str], idf: Any) -> Any:
        """Return the vectoriser of words that are known."""
        columns = {word: column for column, word in enumerate(words) if isinstance(word, str)}
        if not words or len(columns) != len(words):
            raise ValueError("the words of a text classifier must be strings, each there once")
        vectorizer = self._new(columns)
        if self.settings["weighting"] == "tf-idf":
            weights = np.asarray(idf, dtype=np.float64)
            if weights.shape != (len(words),) or not np.isfinite(weights).all():
                raise ValueError("there must be a weight for every word")
            vectorizer.idf_ = weights
            self.idf = weights
        elif self.settings["weighting"] == "log":
            vectorizer.idf_ = np.ones(len(words))
        self.words = words
        return vectorizer


def _check(settings: dict[str, Any]) -> None:
    """Raise for settings that make no sense; vectorisers that are not fitted would not notice."""
    for name, known in _CHOICES.items():
        if settings[name] not in known:
            choices = ", ".join(map(repr, known))
            raise ValueError(f"unknown {name} {settings[name]!r}; use one of {choices}")
    lengths = settings["ngram_range"]
    if not (isinstance(lengths, tuple | list) and len(lengths) == 2 and all(isinstance(n, Integral) for n in lengths)):
        raise ValueError(f"ngram_range is {lengths!r}, but must be a pair of whole numbers")
    if not 1 <= lengths[0] <= lengths[1]:
        raise ValueError(f"ngram_range is {lengths!r}, but must be in order and begin with at least 1")
    stop = settings["stop_words"]
    if not (stop in (None, "english") or (isinstance(stop, list) and all(isinstance(word, str) for word in stop))):
        raise ValueError(f"stop_words is {stop!r}, but must be 'english', a list of words, or None")
    for name in ("min_df", "max_df"):
        if not isinstance(settings[name], Real) or settings[name] < 0:
            raise ValueError(f"{name} is {settings[name]!r}, but must be a number of documents, or a share of them")
    most = settings["max_features"]
    if most is not None and (not isinstance(most, Integral) or most < 1):
        raise ValueError(f"max_features is {most!r}, but must be a whole number of at least 1, or None")
