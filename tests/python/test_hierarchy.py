"""Hierarchies: every form gives the same tree, labels stay what they are, and what is no tree is refused by name."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from nuptse import Hierarchy, KernelClassifier

NESTED = {"animal": ["cat", "dog"], "plant": {"tree": {"oak": None, "elm": {}}, "moss": None}}
PATHS = [
    ("animal", "cat"),
    ("animal", "dog"),
    ("plant", "tree", "oak"),
    ("plant", "tree", "elm"),
    ("plant", "moss"),
]
EDGES = [
    ("life", "animal"),
    ("plant", "tree"),
    ("life", "plant"),
    ("animal", "cat"),
    ("animal", "dog"),
    ("tree", "oak"),
    ("tree", "elm"),
    ("plant", "moss"),
]


class Graph:
    """What of networkx.DiGraph is used."""

    def __init__(self, edges, nodes=(), directed=True):
        self.edges = edges
        self.nodes = list(dict.fromkeys([*nodes, *(end for edge in edges for end in edge[:2])]))
        self.directed = directed

    def is_directed(self):
        return self.directed


def padded(filler):
    return [row + (filler,) * (3 - len(row)) for row in PATHS]


# Every form


@pytest.mark.parametrize(
    "form",
    [
        NESTED,
        {"animal": ["cat", "dog"], "plant": [{"tree": ("oak", "elm")}, "moss"]},
        PATHS,
        iter(PATHS),
        [list(row) for row in PATHS],
        padded(None),
        padded(""),
        padded(float("nan")),
        np.array(padded(""), dtype=object),
        np.array(padded("")),
        pd.DataFrame(padded(None), columns=["kingdom", "order", "species"]),
        pd.DataFrame(padded(pd.NA)),
        PATHS + PATHS[::-1],
        [*PATHS, ("plant", "tree")],
    ],
)
def test_forms_without_a_name_for_the_root(form):
    tree = Hierarchy.parse(form)
    assert tree == Hierarchy.from_paths(PATHS)
    assert tree.labels == (None, "animal", "plant", "cat", "dog", "tree", "moss", "oak", "elm")
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 2, 5, 5]
    assert tree.depths.tolist() == [0, 1, 1, 2, 2, 2, 2, 3, 3]
    assert tree.leaves.tolist() == [3, 4, 6, 7, 8]
    assert tree.classes == ("cat", "dog", "moss", "oak", "elm")
    assert tree.paths[7] == ("plant", "tree", "oak")
    assert tree.paths[0] == ()
    assert tree.n_levels == 3
    assert [list(tree.children(node)) for node in range(9)] == [[1, 2], [3, 4], [5, 6], [], [], [7, 8], [], [], []]


@pytest.mark.parametrize("form", [EDGES, np.array(EDGES), EDGES * 2, Graph(EDGES), Graph([(*e, {}) for e in EDGES])])
def test_forms_with_a_name_for_the_root(form):
    tree = Hierarchy.parse(form)
    assert tree.labels[0] == "life"
    assert set(tree.paths) == set(Hierarchy.from_paths(PATHS).paths)
    assert tree.node_index("life") == 0


def test_a_real_graph():
    networkx = pytest.importorskip("networkx")
    assert Hierarchy.parse(networkx.DiGraph(EDGES)) == Hierarchy.parse(Graph(EDGES))


@pytest.mark.parametrize("root", [-1, None, 2])
@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_parent_array(root, make):
    tree = Hierarchy.parse(make([2, 2, root, 0, 0]))
    assert tree.labels == (2, 0, 1, 3, 4)
    assert tree.classes == (1, 3, 4)
    assert all(type(label) is int for label in tree.labels)


def test_strings_are_the_labels_of_their_classes():
    tree = Hierarchy.parse(["A/01/B", "A/01/C", "A/02/B", "B"])
    assert tree.classes == ("B", "A/01/B", "A/01/C", "A/02/B")
    assert tree.paths[tree.leaves[1]] == ("A", "01", "B")
    assert tree.leaf_index("A/02/B") == tree.leaf_index(("A", "02", "B")) == 3
    assert tree.leaf_index("C") == 2
    assert tree.node_index("A/01") == tree.node_index("01")
    assert tree == Hierarchy.parse(np.array(["/A/01/B/", "A/01/C", "A/02/B", "B"]))
    assert Hierarchy.parse(["x", "y"]).parents.tolist() == [-1, 0, 0]


def test_pairs_are_edges_or_paths():
    assert Hierarchy.parse([("A", "a"), ("A", "b"), ("B", "c")]).n_levels == 2
    assert Hierarchy.parse([("A", "a"), ("A", "b")]).n_levels == 1
    assert Hierarchy.parse([("A", "a"), ("r", "A"), ("r", "b")]).labels[0] == "r"
    assert Hierarchy.parse(pd.DataFrame([("A", "A"), ("B", "A")])).classes == (("A", "A"), ("B", "A"))
    assert Hierarchy.from_paths([("A", "a"), ("A", "b")]).n_levels == 2
    with pytest.raises(ValueError, match="two roots, 'A' and 'B'"):
        Hierarchy.from_edges([("A", "a"), ("A", "b"), ("B", "c")])


def test_a_hierarchy_is_returned_as_it_is():
    tree = Hierarchy.parse(PATHS)
    assert Hierarchy.parse(tree) is tree


# Labels


def test_integers_stay_integers():
    rows = pd.DataFrame([(1, 11, np.nan), (1, 12, 121), (2, np.nan, np.nan)])
    tree = Hierarchy.parse(rows)
    assert tree.classes == (2, 11, 121)
    assert all(type(label) is int for label in tree.labels[1:])
    assert tree.leaf_index(np.int64(121)) == tree.leaf_index(121.0) == 2


def test_one_name_below_two_parents():
    tree = Hierarchy.parse([("A", "other"), ("A", "x"), ("B", "other"), ("B", "y", "z")])
    assert tree.classes == (("A", "other"), "x", ("B", "other"), "z")
    assert tree.leaf_index(("B", "other")) == tree.leaf_index(["B", "other"]) == 2
    with pytest.raises(ValueError, match=r"several nodes.*\('A', 'other'\)"):
        tree.leaf_index("other")


def test_a_class_comes_before_an_inner_node_of_its_name():
    tree = Hierarchy.from_paths([("A", "A"), ("A", "b")])
    assert tree.node_index("A") == tree.leaves[tree.leaf_index("A")] == 2
    assert tree.node_index(("A",)) == 1


def test_classes_in_any_order():
    tree = Hierarchy.parse(PATHS, classes=["oak", "dog"])
    assert tree.classes == ("oak", "dog", "cat", "moss", "elm")
    assert [tree.leaf_index(label) for label in tree.classes] == list(range(5))
    assert tree.leaves[0] == tree.node_index("oak")
    again = Hierarchy.parse(tree, classes=iter(["elm"]))
    assert again.classes == ("elm", "oak", "dog", "cat", "moss")
    assert again != tree
    assert hash(again.with_classes(tree.classes)) == hash(tree)


def test_classes_below_a_node():
    tree = Hierarchy.parse(PATHS, classes=["oak", "dog"])
    assert [tree.classes[c] for c in tree.classes_below(tree.node_index("plant"))] == ["oak", "moss", "elm"]
    assert tree.classes_below(tree.node_index("dog")).tolist() == [1]


def test_arrays_cannot_be_written():
    tree = Hierarchy.parse(PATHS)
    for array in (tree.parents, tree.leaves, tree.depths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# One-child chains


def test_contract_merges_chains():
    tree = Hierarchy.parse({"all": {"A": {"B": ["x", "y"]}, "C": {"D": ["z"]}, "w": None}})
    short = tree.contract()
    assert short.parents.tolist() == [-1, 0, 0, 0, 1, 1]
    assert short.labels == (None, "B", "z", "w", "x", "y")
    assert short.classes == tree.classes
    assert [short.paths[leaf] for leaf in short.leaves] == [tree.paths[leaf] for leaf in tree.leaves]
    assert short.node_index("A") == short.node_index("B") == short.node_index(("all", "A")) == 1
    assert short.leaf_index("C") == short.leaf_index("z")
    assert short.node_index("all") == 0
    assert short.contract() == short
    assert Hierarchy.from_json(short.to_json()) == short
    assert "├── C / D / z" in str(short)


def test_contract_keeps_equal_names_apart():
    tree = Hierarchy.from_paths([("A", "x"), ("B", "x")])
    short = tree.contract()
    assert short.n_levels == 1
    assert short.classes == tree.classes == (("A", "x"), ("B", "x"))


def test_a_single_class_keeps_its_function():
    assert Hierarchy.parse({"a": {"b": None}}).contract().parents.tolist() == [-1, 0]


# Text


def test_text():
    tree = Hierarchy.parse(EDGES)
    assert str(tree).splitlines()[:4] == ["life", "├── animal", "│   ├── cat", "│   └── dog"]
    assert str(tree).splitlines()[-1] == "    └── moss"
    assert repr(tree) == "<Hierarchy of 5 classes on 3 levels: 'cat', 'dog', 'moss', 'oak', 'elm'>"
    assert "\n" not in repr(Hierarchy.parse([0] * 1000))
    assert len(repr(Hierarchy.parse([0] * 1000))) < 100
    html = Hierarchy.parse({"<a>": ["b & c"]})._repr_html_()
    assert "&lt;a&gt;" in html
    assert "<li>b &amp; c</li>" in html


def test_deep_trees_do_not_overflow():
    tree = Hierarchy.parse(np.arange(-1, 2000))
    assert tree.n_levels == 2000
    assert str(tree).count("\n") == 2000
    assert tree._repr_html_().count("<li>") == 2001
    assert tree.contract().n_levels == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "format"),
        ("{}", "format"),
        ("no", "Expecting value"),
        ('{"format": "nuptse.Hierarchy/1", "parents": [0]}', "'labels' is missing"),
        (Hierarchy.parse([0, 0, 0]).to_json().replace("[1, 2]", "[1, 1]"), "not those of its tree"),
    ],
)
def test_json_that_is_no_hierarchy(text, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_json(text)


def test_survives_copies():
    tree = Hierarchy.parse(PATHS, classes=["oak"])
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301
    assert copy.deepcopy(tree) == tree
    assert clone(KernelClassifier(hierarchy=tree, learn=False)).hierarchy == tree


# What is no hierarchy

SELF_CONTAINING: dict = {"a": {"b": None}}
SELF_CONTAINING["a"]["c"] = SELF_CONTAINING


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([("r", "a"), ("b", "c"), ("c", "b")], "'b' lies below itself: 'b' -> 'c' -> 'b'"),
        ([("a", "b"), ("b", "a")], "'a' lies below itself"),
        ([("a", "a"), ("a", "b")], "'a' lies below itself"),
        ([1, 2, 0], "0 lies below itself"),
        ([-1, 2, 1], "1 lies below itself: 1 -> 2 -> 1"),
        (SELF_CONTAINING, "lies below itself"),
        ([("r", "a"), ("r", "b"), ("a", "x"), ("b", "x")], "'x' has two parents, 'a' and 'b'"),
        ([("r", "a"), ("s", "r"), ("t", "b")], "two roots, 's' and 't'"),
        ([-1, 0, -1], "two roots, 0 and 2"),
        (Graph([("a", "b")], nodes=["c"]), "two roots, 'c' and 'a'"),
        (Graph([("a", "b")], directed=False), "no directions"),
        ([-1, 0, 7], "parent of node 2 is 7"),
        ([-2, 0, 0], "parent of node 0 is -2"),
        ([-1, 0.5], "parent of node 1 is 0.5"),
        ([-1, True], "parent of node 1 is True"),
        ([-1, float("nan")], "two roots, 0 and 1"),
        ([-1, "x"], "one form"),
        ([-1], "1 node"),
        ([], "empty"),
        ({}, "1 node"),
        ([("a", "b", "c"), (None, None)], "row 1 of the paths is empty"),
        ([("a", None, "c")], "has a gap"),
        (["a//b"], "has a gap"),
        ([""], "row 0 of the paths is empty"),
        ([("a", "b", "c"), ("a", "b", 1)], "labels mix types: 1 is a number, but 'a' is a string"),
        ([("a", 1), ("a", 2)], None),
        ({"a": [1, 2]}, "labels mix types: 'a' is a string, but 1 is a number"),
        ({"a": [("b", "c")]}, r"\('b', 'c'\) in the dict cannot be a label"),
        ({True: ["b"]}, "True in the dict cannot be a label"),
        ([("a", float("inf"), "c")], "inf in row 0 of the paths cannot be a label"),
        (["a/b", ("a", "c")], r"'a/b' is a string and \('a', 'c'\) a row"),
    ],
)
def test_what_is_no_hierarchy_is_refused_by_name(form, message):
    if message is None:  # the root may be named as it likes
        assert Hierarchy.parse(form).classes == (1, 2)
        return
    with pytest.raises(ValueError, match=message):
        Hierarchy.parse(form)


@pytest.mark.parametrize("form", ["A/B", 3, None, {"a": "b"}, {"a": 3}, [{"a": ["b"]}], [{1, 2}]])
def test_what_is_of_no_known_form_is_refused(form):
    with pytest.raises(TypeError, match=r"must be|cannot be read|no part"):
        Hierarchy.parse(form)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["cat", "fish"], "unknown label 'fish'; the hierarchy has 'cat', 'dog'"),
        (["animal"], "'animal' is no class: it has children, 'cat', 'dog'"),
        (["cat", "dog", "cat"], "'cat' twice"),
        ([1], "unknown label 1"),
    ],
)
def test_classes_that_are_no_leaves_are_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy.parse(PATHS, classes)
    with pytest.raises(ValueError, match=message):
        Hierarchy.parse(PATHS).with_classes(classes)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 nodes, but 2 labels"):
        Hierarchy([-1, 0, 0], ["a", "b"])
    with pytest.raises(ValueError, match="two children of None have the same label, 'a'"):
        Hierarchy([-1, 0, 0], [None, "a", "a"])
    with pytest.raises(ValueError, match="'a/b' must be a string without the separator"):
        Hierarchy([-1, 0], [None, "a/b"], separator="/")
    with pytest.raises(ValueError, match="None in labels cannot be a label"):
        Hierarchy([-1, 0], ["a", None])


# Round trips

LABELS = st.one_of(st.lists(st.integers(), min_size=1), st.lists(st.text(min_size=1, max_size=3), min_size=1))


@st.composite
def hierarchies(draw):
    """Draw trees in which names may repeat below different parents, with the classes in any order."""
    names = draw(LABELS)
    count = draw(st.integers(1, 12))
    rows, paths = [()], {()}
    for _ in range(count):
        path = (*draw(st.sampled_from(rows)), draw(st.sampled_from(names)))
        if path not in paths:
            rows.append(path)
            paths.add(path)
    tree = Hierarchy.from_paths(rows[1:])
    return tree.with_classes(draw(st.permutations(tree.classes)))


@given(hierarchies())
def test_json_gives_the_same_tree(tree):
    again = Hierarchy.from_json(tree.to_json())
    assert again == tree
    assert again.classes == tree.classes
    assert [type(label) for label in again.labels] == [type(label) for label in tree.labels]


@given(hierarchies())
def test_paths_give_the_same_tree(tree):
    assert Hierarchy.from_paths(tree.paths[1:], tree.classes) == tree


@given(hierarchies(), st.randoms(use_true_random=False))
def test_nodes_in_any_order_give_the_same_tree(tree, random):
    order = list(range(len(tree.labels)))
    random.shuffle(order)
    place = {node: i for i, node in enumerate(order)}
    parents = [place.get(tree.parents[node], -1) for node in order]
    again = Hierarchy(parents, [tree.labels[node] for node in order], tree.classes)
    assert set(again.paths) == set(tree.paths)
    assert again.classes == tree.classes
    assert [again.paths[leaf] for leaf in again.leaves] == [tree.paths[leaf] for leaf in tree.leaves]


@given(hierarchies())
def test_numbered_edges_and_parents_give_the_same_tree(tree):
    edges = [(int(parent), node) for node, parent in enumerate(tree.parents) if parent >= 0]
    assert Hierarchy.from_edges(edges) == Hierarchy.parse(tree.parents)
    assert Hierarchy.parse(tree.parents).parents.tolist() == tree.parents.tolist()


@given(hierarchies())
def test_nodes_are_level_by_level_and_found_by_path(tree):
    assert (np.diff(tree.parents) >= 0).all()
    assert (np.diff(tree.depths) >= 0).all()
    assert tree.depths.tolist() == [len(path) for path in tree.paths]
    for node, path in enumerate(tree.paths[1:], start=1):
        assert tree.node_index(path) == node
        assert tree.parents[list(tree.children(node))].tolist() == [node] * len(tree.children(node))
    assert [tree.leaf_index(label) for label in tree.classes] == list(range(len(tree.classes)))
    assert sorted(tree.classes_below(0)) == list(range(len(tree.classes)))
    assert len(str(tree).split("\n")) >= len(tree.labels)


@given(hierarchies())
def test_contracted_trees_have_no_chains(tree):
    short = tree.contract()
    assert short.classes == tree.classes
    assert all(len(short.children(node)) != 1 for node in range(1, len(short.labels)))
    assert [short.paths[leaf] for leaf in short.leaves] == [tree.paths[leaf] for leaf in tree.leaves]
    assert Hierarchy.from_json(short.to_json()) == short
    for node, path in enumerate(short.paths[1:], start=1):
        assert short.node_index(path) == node
