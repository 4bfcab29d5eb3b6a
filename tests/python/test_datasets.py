"""Made-up data: what is drawn is what was asked for, the same every time, and follows the tree."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nuptse import Hierarchy
from nuptse.datasets import make_taxonomy


def test_one_seed_gives_one_data_set():
    one, same, other = (make_taxonomy(100, random_state=seed) for seed in (1, np.random.RandomState(1), 2))
    assert (one.data != same.data).nnz == 0
    assert one.target.tolist() == same.target.tolist()
    assert one.hierarchy == same.hierarchy
    assert one.target.tolist() != other.target.tolist()
    assert one.hierarchy != other.hierarchy


def test_documents_are_counts_of_words():
    documents = make_taxonomy(80, n_words=300, words_per_document=25, random_state=0)
    assert isinstance(documents.data, csr_array)
    assert documents.data.shape == (80, 300)
    assert documents.data.dtype == np.float64
    assert documents.data.indices.dtype == np.int32
    assert documents.data.has_canonical_format
    assert documents.data.data.min() == 1
    assert (documents.data.sum(axis=1) == 25).all()
    assert documents.target.shape == (80,)
    assert documents.target.dtype.kind == "U"


@pytest.mark.parametrize(("n_classes", "n_levels"), [(2, 1), (2, 3), (50, 3), (130, 2), (30, 6)])
def test_the_tree_has_the_classes_and_levels_asked_for(n_classes, n_levels):
    documents = make_taxonomy(n_classes, n_classes=n_classes, n_levels=n_levels, random_state=0)
    tree = documents.hierarchy
    assert len(tree.classes) == n_classes
    assert tree.n_levels == n_levels
    assert (tree.depths[tree.leaves] == n_levels).all()
    assert len(tree.children(0)) >= 2
    assert (np.diff(np.bincount(tree.depths)) >= 0).all()


def test_levels_grow_geometrically():
    tree = make_taxonomy(1, n_classes=1000, random_state=0).hierarchy
    assert np.bincount(tree.depths).tolist() == [1, 10, 100, 1000]
    branching = [len(tree.children(node)) for node in range(11, 111)]
    assert min(branching) < 5
    assert max(branching) > 20


def test_labels_give_the_tree_and_sort_as_it_does():
    documents = make_taxonomy(500, n_classes=300, random_state=0)
    assert Hierarchy.parse(np.unique(documents.target)) == documents.hierarchy
    assert np.unique(documents.target).tolist() == list(documents.hierarchy.classes)


@pytest.mark.parametrize("class_skew", [0, 0.5, 3])
@pytest.mark.parametrize("n_samples", [50, 51, 400])
def test_every_class_has_a_document(n_samples, class_skew):
    target = make_taxonomy(n_samples, n_classes=50, class_skew=class_skew, random_state=0).target
    assert len(target) == n_samples
    assert len(set(target)) == 50


def test_classes_may_outnumber_documents():
    documents = make_taxonomy(20, n_classes=50, random_state=0)
    assert documents.data.shape[0] == len(documents.target) == 20
    assert set(documents.target) < set(documents.hierarchy.classes)


def test_skew_makes_classes_unequal():
    def sizes(class_skew):
        target = make_taxonomy(5000, n_classes=40, class_skew=class_skew, random_state=0).target
        return np.sort(np.unique(target, return_counts=True)[1])[::-1]

    assert sizes(0).tolist() == [125] * 40
    assert sizes(1)[0] / sizes(1)[9] == pytest.approx(10, rel=0.05)


def mean_words(documents):
    """Return for every class the mean of its documents, with length one."""
    means = np.stack([documents.data[documents.target == label].mean(axis=0) for label in documents.hierarchy.classes])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def alikeness_by_common_levels(documents):
    """Return the mean cosine of two classes whose paths part below the root, below level 1, and so on."""
    paths = np.array([label.split("/") for label in documents.hierarchy.classes])
    common = (paths[:, None] == paths[None]).cumprod(axis=2).sum(axis=2)
    words = mean_words(documents)
    return [(words @ words.T)[common == levels].mean() for levels in range(paths.shape[1])]


def test_near_classes_share_more_words():
    far, near, siblings = alikeness_by_common_levels(make_taxonomy(2000, n_classes=60, random_state=0))
    assert far + 0.05 < near
    assert near + 0.05 < siblings


def test_without_topics_documents_tell_nothing():
    shares = alikeness_by_common_levels(make_taxonomy(2000, n_classes=60, topic_share=0, random_state=0))
    assert np.ptp(shares) < 0.01


def test_with_topics_alone_distant_documents_share_few_words():
    far, _, siblings = alikeness_by_common_levels(make_taxonomy(2000, n_classes=60, topic_share=1, random_state=0))
    assert far < 0.1
    assert siblings > 0.5


def test_thousands_of_classes():
    documents = make_taxonomy(20_000, n_classes=5000, random_state=0)
    assert documents.data.shape == (20_000, 5000)
    assert np.bincount(documents.hierarchy.depths).tolist() == [1, 17, 292, 5000]
    assert len(set(documents.target)) == 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples is 0, but must be a whole number, at least 1"),
        ({"n_samples": 10.5}, "n_samples is 10.5"),
        ({"n_classes": 1}, "n_classes is 1, but must be a whole number, at least 2"),
        ({"n_levels": 0}, "n_levels is 0"),
        ({"n_words": 0}, "n_words is 0"),
        ({"words_per_document": -1}, "words_per_document is -1"),
        ({"words_per_topic": 0}, "words_per_topic is 0"),
        ({"topic_share": 1.1}, "topic_share is 1.1, but is a probability"),
        ({"topic_share": float("nan")}, "topic_share is nan"),
        ({"class_skew": -0.1}, "class_skew is -0.1"),
        ({"class_skew": float("inf")}, "class_skew is inf"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_arguments_out_of_range_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_taxonomy(**arguments)
