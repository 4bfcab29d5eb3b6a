"""Documents as they are, with a kernel classifier on their words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from nuptse._all_or_nothing import all_or_nothing
from nuptse._files import kept_in_files, save_model
from nuptse._words import WordCounts, as_documents
from nuptse.classifier import KernelClassifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags
    from typing_extensions import Self

    from nuptse.hierarchy import Hierarchy

__all__ = ["TextClassifier"]

Floats: TypeAlias = "NDArray[np.float64]"


#: of the cross-validation, where nobody says otherwise
FOLDS_OF_TEXT = 3


@kept_in_files
class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A `KernelClassifier` that takes documents as strings and keeps the words it knows.

    Words are counted by scikit-learn's vectorisers, which hash nothing: every input of the classifier is a word that
    can be shown. The words are saved with the model, so that what :func:`nuptse.load` returns takes raw text too.

    Parameters
    ----------
    classifier : KernelClassifier, default=None
        What is fitted to the words; by default ``KernelClassifier("linear", scale="auto", folds=3)``: texts
        are many as a rule, and five folds take twice the time.
    hierarchy : None, Hierarchy, or anything that `Hierarchy.parse` takes, default=None
        A tree whose leaves are the classes, where `classifier` has none of its own.
    weighting : {"tf-idf", "log", "counts"}, default="tf-idf"
        What the inputs are: one plus the logarithm of how often a word occurs, times its inverse document frequency;
        the same without the latter, for kernels that learn weights, as ``Linear(groups="frequency")``; or plain counts.
    ngram_range : (int, int), default=(1, 1)
        The shortest and the longest sequence of words, or of characters, that is counted.
    analyzer : {"word", "char", "char_wb"}, default="word"
        What is counted: words of at least two letters, characters, or characters within words.
    lowercase : bool, default=True
        Take upper and lower case to be the same.
    strip_accents : {None, "ascii", "unicode"}, default=None
        Take letters with and without accents to be the same.
    stop_words : None, "english" or list of str, default=None
        Words that are not counted.
    min_df : int or float, default=1
        The number of documents, or as a float the share of them, in which a word must occur to be counted.
    max_df : int or float, default=1.0
        The number of documents, or as a float the share of them, in which a word may occur to be counted.
    max_features : int, default=None
        Count so many words at most, the most frequent ones.

    Attributes
    ----------
    classifier_ : KernelClassifier
        The fitted classifier; its attributes (`hyperparameters_`, `cv_value_`, `history_`, ...) say how that went.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    hierarchy_ : Hierarchy or None
        The tree over the classes.
    word_counts_ : dict
        The settings with which words are counted.
    words_ : list of str
        The words, in the order of the inputs of the classifier.
    idf_ : ndarray of shape (n_words,) or None
        Their inverse document frequencies.

    Examples
    --------
    >>> from nuptse import TextClassifier
    >>> texts = ["a cat purrs", "the cat sleeps", "an oak grows", "the oak stands"] * 2
    >>> clf = TextClassifier().fit(texts, ["animal", "animal", "plant", "plant"] * 2)
    >>> clf.predict(["some cat", "one oak"]).tolist()
    ['animal', 'plant']

    """

    def __init__(
        self,
        classifier: KernelClassifier | None = None,
        *,
        hierarchy: Any = None,
        weighting: str = "tf-idf",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str = "word",
        lowercase: bool = True,
        strip_accents: str | None = None,
        stop_words: str | Sequence[str] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.hierarchy = hierarchy
        self.weighting = weighting
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn what this estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(
        self,
        texts: Iterable[str],
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Count words, and fit the classifier.

        Parameters
        ----------
        texts : iterable of str
            The documents.
        y, sample_weight, groups
            As in :meth:`KernelClassifier.fit`.

        Returns
        -------
        self : object
            The fitted estimator.

        """
        documents = as_documents(texts)
        if len(documents) != len(np.asarray(y)):
            raise ValueError(f"there are {len(documents)} documents, but {len(np.asarray(y))} labels")
        with all_or_nothing(self):
            words = WordCounts(self._settings())
            X = words.fit(documents)
            self.classifier_ = self._template().fit(X, y, sample_weight, groups=groups)
            self.word_counts_, self.words_, self.idf_ = words.settings, words.words, words.idf
            self._words = words
        return self

    def transform(self, texts: Iterable[str]) -> Any:
        """Return documents as the classifier sees them.

        Parameters
        ----------
        texts : iterable of str
            The documents.

        Returns
        -------
        X : sparse matrix of shape (n_samples, n_words)
            One row a document, one column a word of `words_`; words that are not known are left out.

        """
        check_is_fitted(self, "classifier_")
        if not hasattr(self, "_words"):
            self._words = WordCounts(self.word_counts_, self.words_, self.idf_)
        return self._words.transform(as_documents(texts))

    def predict(self, texts: Iterable[str], loss: str = "zero_one") -> NDArray[Any]:
        """Predict the label of every document; `loss` as in :meth:`KernelClassifier.predict`."""
        X = self.transform(texts)
        return self.classifier_.predict(X, loss)

    def predict_proba(self, texts: Iterable[str]) -> Floats:
        """Return the probability of every class, one row a document, in the order of `classes_`."""
        X = self.transform(texts)
        return self.classifier_.predict_proba(X)

    def predict_log_proba(self, texts: Iterable[str]) -> Floats:
        """Return the logarithm of the probability of every class, one row a document, in the order of `classes_`."""
        X = self.transform(texts)
        return self.classifier_.predict_log_proba(X)

    def node_proba(self, texts: Iterable[str]) -> Floats:
        """Return the probability of every node of the hierarchy, as :meth:`KernelClassifier.node_proba` does."""
        X = self.transform(texts)
        return self.classifier_.node_proba(X)

    def decision_function(self, texts: Iterable[str]) -> Floats:
        """Return the class functions, as :meth:`KernelClassifier.decision_function` does."""
        X = self.transform(texts)
        return self.classifier_.decision_function(X)

    def score(self, texts: Iterable[str], y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of documents whose label is predicted, as :meth:`KernelClassifier.score` does."""
        X = self.transform(texts)
        return self.classifier_.score(X, y, sample_weight)

    def report(
        self,
        texts: Iterable[str],
        y: ArrayLike,
        path: str | PathLike[str] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        documents: Sequence[str] | None = None,
        title: str | None = None,
    ) -> Any:
        """Write a page about the model on documents, as `KernelClassifier.report` does; they are shown in it."""
        shown = as_documents(texts)
        X = self.transform(shown)
        classifier: Any = self.classifier_
        documents = shown if documents is None else documents
        return classifier.report(X, y, path, sample_weight=sample_weight, documents=documents, title=title)

    def top_features(self, node_or_class: Any = None, n: int = 10) -> Any:
        """Return the words that speak for and against a class or node, as `KernelClassifier.top_features` does."""
        check_is_fitted(self, "classifier_")
        classifier: Any = self.classifier_
        return classifier.top_features(node_or_class, n, self.words_)

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the words in the order of the inputs of the classifier."""
        check_is_fitted(self, "classifier_")
        return np.array(self.words_, dtype=object)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator with its words to a file, for :func:`nuptse.load`; see `KernelClassifier.save`.

        Parameters
        ----------
        path : path-like
            Where to.

        """
        check_is_fitted(self, "classifier_")
        save_model(self, path)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        return self._fitted.classes_

    @property
    def hierarchy_(self) -> Hierarchy | None:
        """The tree over the classes."""
        return self._fitted.hierarchy_

    @property
    def _fitted(self) -> KernelClassifier:
        # An AttributeError, so that `hasattr` is false before a fit, as for other estimators.
        return (
            cast("KernelClassifier", vars(self)["classifier_"]) if "classifier_" in vars(self) else self._not_fitted()
        )

    def _not_fitted(self) -> KernelClassifier:
        raise AttributeError(f"this {type(self).__name__} is not fitted yet; call 'fit' first")

    def _template(self) -> KernelClassifier:
        """Return the classifier that is to be fitted."""
        if self.classifier is None:
            return KernelClassifier("linear", hierarchy=self.hierarchy, scale="auto", folds=FOLDS_OF_TEXT)
        classifier: KernelClassifier = clone(self.classifier)
        if self.hierarchy is not None:
            if classifier.hierarchy is not None:
                raise ValueError("both the text classifier and its classifier have a hierarchy; give one of them")
            classifier.set_params(hierarchy=self.hierarchy)
        return classifier

    def _settings(self) -> dict[str, Any]:
        names = [name for name in self.get_params(deep=False) if name not in {"classifier", "hierarchy"}]
        return {name: getattr(self, name) for name in names}

    def _check_loaded(self) -> None:
        """Raise where parts of a file do not fit together."""
        self._words = WordCounts(self.word_counts_, self.words_, self.idf_)
        if len(self.words_) != self.classifier_.n_features_in_:
            raise ValueError("there are not as many words as inputs")
