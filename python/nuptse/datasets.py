"""Made-up data with structured classes, to try things on."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from nuptse.hierarchy import Hierarchy

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["make_taxonomy"]

_SEPARATOR = "/"


def make_taxonomy(
    n_samples: int = 1000,
    *,
    n_classes: int = 50,
    n_levels: int = 3,
    n_words: int = 5000,
    words_per_document: int = 60,
    words_per_topic: int = 30,
    topic_share: float = 0.5,
    class_skew: float = 0.5,
    random_state: Any = None,
) -> Bunch:
    """Draw sparse documents, each of one class, from a random tree of topics.

    Every node below the root has a topic: some words of the vocabulary, the first of which are used most. A document
    draws some of its words from a stock that all documents share and in which few words are common and most are rare;
    the others from the topics of the nodes on the path to its class, all levels alike. So classes have the more words
    in common the nearer they are in the tree.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of documents. Every class has at least one if there are enough of them.
    n_classes : int, default=50
        The number of classes, which are the leaves of the tree.
    n_levels : int, default=3
        The number of levels below the root. All classes are on the last one; the numbers of nodes on the levels above
        grow geometrically, and are shared out at random among their parents.
    n_words : int, default=5000
        The size of the vocabulary.
    words_per_document : int, default=60
        The length of every document.
    words_per_topic : int, default=30
        The number of words drawn for every topic; a word that is drawn twice counts twice.
    topic_share : float, default=0.5
        The probability that a word is drawn from a topic, not from the common stock. At 0 documents tell nothing about
        their class.
    class_skew : float, default=0.5
        How unequal the classes are: the size of the k-th largest is about proportional to k to the power of minus this.
        At 0 sizes differ by one at most.
    random_state : int, RandomState instance or None, default=None
        Where chance comes from; the same number gives the same documents.

    Returns
    -------
    dataset : Bunch
        With the entries

        - data : csr_array of shape (n_samples, n_words), how often every word occurs in every document;
        - target : ndarray of shape (n_samples,), the class of every document, its path as a string "3/0/12". All
          numbers of a level have the same number of digits, so that sorted classes are in the order of the tree;
        - hierarchy : Hierarchy, the tree of all classes, with or without documents.

    Examples
    --------
    >>> from nuptse.datasets import make_taxonomy
    >>> documents = make_taxonomy(random_state=0)
    >>> documents.data.shape
    (1000, 5000)
    >>> documents.target[:3].tolist()
    ['0/0/1', '3/0/2', '2/0/0']
    >>> documents.hierarchy
    <Hierarchy of 50 classes on 3 levels: '0/0/0', '0/0/1', '0/0/2', '0/0/3', '0/0/4', '0/0/5', ... (50 in all)>

    """
    _check_count("n_samples", n_samples, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("n_levels", n_levels, 1)
    _check_count("n_words", n_words, 1)
    _check_count("words_per_document", words_per_document, 1)
    _check_count("words_per_topic", words_per_topic, 1)
    if not 0 <= topic_share <= 1:
        raise ValueError(f"topic_share is {topic_share!r}, but is a probability and must be from 0 to 1")
    if not 0 <= class_skew < math.inf:
        raise ValueError(f"class_skew is {class_skew!r}, but must be finite and not below 0; 0 is for equal classes")

    rng = check_random_state(random_state)
    hierarchy = _draw_tree(rng, n_classes, n_levels)
    classes = np.repeat(np.arange(n_classes), _draw_class_sizes(rng, n_samples, n_classes, class_skew))
    classes = rng.permutation(classes)

    # One entry for every word of every document, first as if all came from a topic, then from the stock where they do.
    shape = n_samples, words_per_document
    topics = rng.randint(n_words, size=(len(hierarchy.labels), words_per_topic))
    level = rng.randint(n_levels, size=shape)
    node = _paths(hierarchy)[classes[:, None], level]
    topic_words = topics[node, _draw_ranks(rng, words_per_topic, shape)]
    common_words = _draw_ranks(rng, n_words, shape)
    words = np.where(rng.random_sample(shape) < topic_share, topic_words, common_words)

    # Indices of 32 bits, since many estimators take no others.
    starts = np.arange(0, words.size + 1, words_per_document, dtype=np.int32)
    counts = csr_array((np.ones(words.size), words.ravel().astype(np.int32), starts), shape=(n_samples, n_words))
    counts.sum_duplicates()
    return Bunch(data=counts, target=np.array(hierarchy.classes)[classes], hierarchy=hierarchy)


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} is {value!r}, but must be a whole number, at least {least}")


def _draw_tree(rng: Any, n_classes: int, n_levels: int) -> Hierarchy:
    """Draw a tree with all classes on the last level; nodes are labelled by their number below their parent."""
    parents = [np.array([-1])]
    labels: list[str | None] = [None]
    for level in range(1, n_levels + 1):
        size = max(2, round(n_classes ** (level / n_levels)))
        above = len(parents[-1])
        # Every node above has a child, so that no branch ends early.
        children = 1 + rng.multinomial(size - above, rng.dirichlet(np.ones(above)))
        first = sum(map(len, parents[:-1]))
        parents.append(np.repeat(np.arange(first, first + above), children))
        digits = len(str(children.max() - 1))
        labels.extend(f"{number:0{digits}}" for count in children.tolist() for number in range(count))
    return Hierarchy(np.concatenate(parents), labels, separator=_SEPARATOR)


def _draw_class_sizes(rng: Any, n_samples: int, n_classes: int, skew: float) -> NDArray[np.int64]:
    """Share documents out among the classes, which are large or small at random."""
    shares: NDArray[np.float64] = rng.permutation(np.arange(1, n_classes + 1) ** -float(skew))
    certain = int(n_samples >= n_classes)
    # Rounding the running total keeps every size within one of its share, and their sum exact.
    totals = np.round(np.cumsum(shares) / shares.sum() * (n_samples - certain * n_classes))
    return np.asarray(certain + np.diff(totals, prepend=0), dtype=np.int64)


def _draw_ranks(rng: Any, count: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Draw numbers below `count`, each with a probability that is inverse to its rank (Zipf's law)."""
    cumulative = np.cumsum(1 / np.arange(1, count + 1))
    uniform: NDArray[np.float64] = rng.random_sample(shape)
    return np.searchsorted(cumulative / cumulative[-1], uniform, side="right")


def _paths(hierarchy: Hierarchy) -> NDArray[np.int64]:
    """Return the nodes from below the root to every class, a row for each."""
    nodes = [hierarchy.leaves]
    for _ in range(hierarchy.n_levels - 1):
        nodes.append(hierarchy.parents[nodes[-1]])
    return np.column_stack(nodes[::-1])
