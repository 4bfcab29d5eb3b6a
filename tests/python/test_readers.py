"""Readers of the command line: every format, compressed or not, and what is said of files that make no sense."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nuptse import Hierarchy
from nuptse._cli.dataset import Request
from nuptse._cli.errors import CommandError, InputError, UsageError
from nuptse._cli.labels import KnownLabels, typed
from nuptse._cli.opening import read_bytes
from nuptse._cli.reading import READERS, format_of, read
from nuptse._cli.taxonomy import read_taxonomy, tree_of_paths

CSV = "a,b,label\n1,2,x\n3,4.5,y\n"


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def ask(path, **more):
    return read(Request(path, more.pop("format", None) or format_of(path, None), **more))


def refused(path, match, **more):
    with pytest.raises(InputError, match=match):
        ask(path, **more)


# Tables


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_compressed_files_are_read_as_others_whatever_their_name(file, squeeze):
    for name in ("data.csv", "data.csv.gz", "data.csv.xz"):
        data = ask(file(name, squeeze(CSV.encode())))
        np.testing.assert_array_equal(data.X, [[1, 2], [3, 4.5]])
        assert data.labels == ["x", "y"]
        assert data.columns == ["a", "b"]


def test_damaged_compression_is_told(file):
    refused(file("data.csv.gz", gzip.compress(CSV.encode())[:-5]), "is damaged")
    refused(file("data.csv.xz", lzma.compress(CSV.encode())[:-5]), "is damaged")


def test_tabs_delimiters_marks_and_encodings(file):
    assert ask(file("a.tsv", CSV.replace(",", "\t"))).labels == ["x", "y"]
    assert ask(file("b.csv", CSV.replace(",", ";")), delimiter=";").labels == ["x", "y"]
    assert ask(file("c.csv", "\ufeff" + CSV.replace("\n", "\r\n"))).columns == ["a", "b"]
    latin = "a,label\n1,ä\n2,ö\n".encode("latin-1")
    refused(file("d.csv", latin), "line 2: .*--encoding")
    assert ask(file("d.csv", latin), encoding="latin-1").labels == ["ä", "ö"]
    refused(file("d.csv", latin), "cannot be read as 'klingon'", encoding="klingon")
    assert ask(file("e.csv", "1,2,x\n3,4,y\n"), header=False, label="3").columns is None


def test_columns_with_a_purpose_are_no_inputs(file):
    path = file("a.csv", "id,w,g,split,n,label\nq,2,u,train,7,x\nr,1,v,test,8,y\ns,3,v,train,9,x\n")
    data = ask(path, identifier="id", weight="w", groups="g", where=(("split", "train"),))
    assert data.columns == ["n"]
    np.testing.assert_array_equal(data.X, [[7], [9]])
    np.testing.assert_array_equal(data.weights, [2, 3])
    assert (data.groups, data.identifiers, data.labels) == (["u", "v"], ["q", "s"], ["x", "x"])
    assert ask(path, ignore=("id", "g", "split")).columns == ["w", "n"]
    refused(path, "no rows that --where allows", where=(("split", "dev"),))
    refused(path, "did you mean 'split'", where=(("splt", "train"),))


def test_documents_in_a_column(file):
    path = file("a.tsv", 'label\tbody\nx\t"Foo" is a bar\ny\t"unbalanced\n')
    data = ask(path, text="body")
    assert data.kind == "text"
    assert data.X == ['"Foo" is a bar', '"unbalanced']
    quoted = file("b.csv", 'label,body\nx,"two\nlines, here"\n' + f"y,{'word ' * 50_000}\n")
    assert ask(quoted, text="body").X[0] == "two\nlines, here"


def test_errors_name_column_and_line(file):
    refused(file("a.csv", "a,b,label\n1,2,x\n3,,y\n"), r"line 3, column 'b': the value is missing.*--ignore 'b'")
    refused(file("a.csv", "a,b,label\n1,NA,x\n"), "line 2, column 'b': the value is missing")
    refused(file("a.csv", "a,b,label\n1,red,x\n"), "line 2, column 'b': 'red' is no number")
    refused(file("a.csv", "a,b,label\n1,1_000,x\n"), "line 2, column 'b': '1_000' is no number")
    refused(file("a.csv", "a,b,label\n1,1e999,x\n"), "line 2, column 'b': '1e999' is too large")
    refused(file("a.csv", "a,b,label\n1,2,x\n1,2\n"), "line 3: 2 fields, but line 1 has 3")
    refused(file("a.csv", "a,b,label\n1,2,\n"), "line 2, column 'label': the label is missing")
    refused(file("a.csv", "a,b,label\n1,2,x\n"), "no column 'w'", weight="w")
    refused(file("a.csv", "a,w,label\n1,heavy,x\n"), "line 2, column 'w': 'heavy' is no number", weight="w")
    refused(file("a.csv", ",a,label\n0,1,x\n"), "column 1 has no name.*--ignore ''")
    refused(file("a.csv", "a,a,label\n0,1,x\n"), "two columns 'a'")
    refused(file("a.csv", "a;label\n0;x\n"), "use --delimiter ';'")
    refused(file("a.csv", ""), "is empty")
    refused(file("a.csv", "a,label\n"), "no rows below its header")
    refused(file("a.csv", "label\nx\n"), "no column left for inputs")
    refused(file("a.csv", "a,species\n1,x\n"), "no column 'label'.*--label")
    refused(file("a.csv", CSV), "cannot be a delimiter", delimiter="::")
    refused(file("a.tsv", 'a\tlabel\n"1\t2"\tx\n'), "--quotes")
    many = "a,label\n" + "1,x\n" * 5000 + "oops,x\n"
    refused(file("a.csv", many), "line 5002, column 'a': 'oops'")


def test_columns_of_a_model_are_found_by_name(file):
    path = file("a.csv", "b,id,a\n1,q,2\n")
    np.testing.assert_array_equal(ask(path, labelled=False, columns=["a", "b"]).X, [[2, 1]])
    refused(path, "no column 'c', which the model needs", labelled=False, columns=["a", "c"])
    refused(path, "2 columns of inputs, but the model needs 5", labelled=False, n_columns=5, ignore=("id",))


def test_parquet_tables(file):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def parquet(columns):
        stream = io.BytesIO()
        pq.write_table(pa.table(columns), stream)
        return file("a.parquet", stream.getvalue())

    path = parquet({"a": [1, 2], "b": [0.5, 1.5], "t": ["one cat", "two"], "label": [3, 4], "ok": [True, False]})
    data = ask(path, ignore=("t",))
    np.testing.assert_array_equal(data.X, [[1, 0.5, 1], [2, 1.5, 0]])
    assert data.labels == ["3", "4"]
    assert ask(path, text="t").X == ["one cat", "two"]
    assert ask(path, text="t", where=(("label", "4"),)).X == ["two"]
    refused(path, "column 't': it holds .*string, not numbers")
    refused(parquet({"a": [1.0, None], "label": ["x", "y"]}), "row 2, column 'a': the value is missing")
    refused(parquet({"a": [1.0, 2.0], "label": ["x", None]}), "row 2, column 'label': the label is missing")


def test_parquet_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    refused(file("a.parquet", b"PAR1"), r"pip install 'nuptse\[parquet\]'")


# Vectors


def test_svmlight_is_read_with_any_labels(file):
    data = ask(file("a.svm", "# comment\n+1 1:0.5 3:2 # here\n-1 qid:7 2:1e-3\n\nA01B\n"))
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 2], [0, 1e-3, 0], [0, 0, 0]])
    assert data.labels == ["1", "-1", "A01B"]
    assert data.first_column == 1
    assert ask(file("a.svm", "1 0:5\n2 1:1\n")).first_column == 0
    known = ask(file("a.svm", "1 1:5\n"), n_columns=4, first_column=0)
    np.testing.assert_array_equal(known.X.toarray(), [[0, 5, 0, 0]])


def test_svmlight_errors_name_the_line(file):
    refused(file("a.svm", "1 1:2\n1:2 3:4\n"), "line 2: it begins with '1:2', not with a label")
    refused(file("a.svm", "1 1:2:3\n"), "line 1: '1:2:3' is no entry")
    refused(file("a.svm", "1 1:x\n"), "line 1: 'x' is no number")
    refused(file("a.svm", "1 1.5:2\n"), "line 1: 1.5 cannot be the number of a column")
    refused(file("a.svm", "1 -1:2\n"), "line 1: -1 cannot be the number of a column")
    refused(file("a.svm", "1 99999999999:2\n"), "cannot be the number of a column")
    refused(file("a.svm", "1 1:nan\n"), "line 1: a value is nan")
    refused(file("a.svm", "2 1:1\n1 1:2 1:3\n"), "line 2: a column is there twice")
    refused(file("a.svm", "\n#\n"), "no lines with data")
    refused(file("a.svm", "1 5:1\n"), "column 5, but those of the model go from 1 to 4", n_columns=4, first_column=1)
    refused(file("a.svm", "1 5:1\n"), "nothing for --text", text="a")


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_npz_in_all_layouts(file):
    X = np.arange(6.0).reshape(3, 2)
    dense = ask(file("a.npz", npz(X=X, y=["u", "v", "u"], feature_names=["p", "q"])))
    np.testing.assert_array_equal(dense.X, X)
    assert (dense.labels, dense.columns) == (["u", "v", "u"], ["p", "q"])
    stream = io.BytesIO()
    scipy.sparse.save_npz(stream, scipy.sparse.csc_array(X))
    labels = file("labels.txt", "u\nv\nu\n")
    sparse = ask(file("a.npz", stream.getvalue()), labels_path=labels)
    np.testing.assert_array_equal(sparse.X.toarray(), X)
    assert sparse.labels == ["u", "v", "u"]
    rows = scipy.sparse.csr_array(X)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape}
    more = {"leaf": np.array([1, 2, 1]), "is_test": np.array([False, True, False]), "w": np.ones(3)}
    found = ask(
        file("a.npz", npz(**parts, **more)), label="leaf", weight="w", groups="leaf", where=(("is_test", "False"),)
    )
    np.testing.assert_array_equal(found.X.toarray(), X[[0, 2]])
    assert (found.labels, found.groups) == (["1", "1"], ["1", "1"])
    assert found.kind == "sparse"


def test_npz_errors(file):
    X = np.ones((3, 2))
    refused(file("a.npz", npz(X=X)), "no array 'y'.*--label")
    refused(file("a.npz", npz(Z=X)), "must have the arrays X .*; it has Z")
    refused(file("a.npz", npz(X=X, y=[1])), r"y has shape \(1,\), but there are 3 rows")
    refused(file("a.npz", npz(X=X[0], y=[1, 2])), "must have a row for every point")
    refused(file("a.npz", npz(X=np.array([[1, np.nan]]), y=[1])), "not finite, in row 1, column 2")
    refused(file("a.npz", npz(X=[["a"]], y=[1])), "not numbers")
    refused(file("a.npz", npz(X=np.array([[print]]), y=[1])), "cannot be read as .npz")
    refused(file("a.npz", npz(data=[1.0], indices=[9], indptr=[0, 1], shape=(1, 2), y=[1])), "do not fit together")
    refused(file("a.npz", npz(X=X, y=[1, 2, 3], feature_names=["a", "a"])), "a name of its own")
    stream = io.BytesIO()
    np.save(stream, X)
    refused(file("a.npz", stream.getvalue()), "one array without a name")


# Documents


def test_lines_with_labels_before_a_tab_or_in_a_file(file):
    data = ask(file("a.txt", "x\tone cat\ny\ttwo\tdogs\n"))
    assert (data.X, data.labels) == (["one cat", "two\tdogs"], ["x", "y"])
    labels = file("labels.txt", "x\ny\n")
    assert ask(file("b.txt", "one cat\n\n"), labels_path=labels).X == ["one cat", ""]
    refused(file("b.txt", "one cat\n"), "2 labels, but .* has 1 rows", labels_path=labels)
    refused(file("b.txt", "x\tone\nno label\n"), "line 2: there is no label before a tab.*--labels")
    refused(file("b.txt", "x\tone\n"), "line 1: the label is missing", labels_path=file("l.txt", "\n"))
    refused(file("b.txt", ""), "is empty")


def test_documents_to_be_predicted_are_whole_lines_unless_all_begin_with_a_known_label(file):
    path = file("a.txt", "x\tone cat\ny\ttwo\n")
    assert ask(path, labelled=False).X == ["x\tone cat", "y\ttwo"]
    assert ask(path, labelled=False, known_labels={"x", "y"}).X == ["one cat", "two"]
    assert ask(path, labelled=False, known_labels={"x"}).X == ["x\tone cat", "y\ttwo"]


# What is read how


def test_formats_are_told_by_names():
    names = {"a.csv": "csv", "A.TSV.GZ": "tsv", "b.libsvm.xz": "svmlight", "c.d.npz": "npz", "e.txt.bz2": "text"}
    assert {name: format_of(name, None) for name in names} == names
    assert format_of("a.csv", "text") == "text"
    assert format_of("-", None, usual="csv") == "csv"
    with pytest.raises(UsageError, match="--format"):
        format_of("-", None)
    with pytest.raises(UsageError, match=r"does not tell its format.*\.csv"):
        format_of("data.gz", None)


def test_files_that_cannot_be_opened(tmp_path):
    refused(str(tmp_path / "missing.csv"), "cannot be read: No such file")
    refused(str(tmp_path), "cannot be read: Is a directory", format="csv")
    refused("a\0.csv", "cannot be read")


def test_labels_are_numbers_only_if_all_are_written_so():
    assert typed(["3", "-1", "3"]) == [3, -1, 3]
    for labels in (["1", "x"], ["01"], ["+1"], ["1.0"], ["1" * 30], ["-0"], ["²"], [""]):
        assert typed(labels) == labels


def test_labels_of_a_tree_are_found_by_any_name():
    tree = Hierarchy.parse(["A/01/B", "A/01/C", "H/04/L"])
    known = KnownLabels(tree.classes, tree, {"7": "A/01/C"})
    assert known.find_all(["A/01/B", "B", "7", "A/01", "H"], "data") == ["A/01/B", "B", "A/01/C", "A/01", "H"]
    assert [known.class_of(label) for label in ("B", "A/01/C", "A/01", "H")] == ["A/01/B", "A/01/C", None, "H/04/L"]
    assert "Z" not in known
    with pytest.raises(InputError, match="not known: 'Z', on 2 of 3 points"):
        known.find_all(["Z", "B", "Z"], "data")
    numbers = Hierarchy.parse([-1, 0, 0])
    assert KnownLabels(numbers.classes, numbers, {}).find("2") == 2
    assert KnownLabels([1, 2], None, {}).find("2") == 2


# Taxonomies

TREE = Hierarchy.parse({"A": ["x", "y"], "B": ["z"]})


def shape(tree):
    return sorted("/".join(map(str, tree.paths[leaf])) for leaf in tree.leaves)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nested.json", json.dumps({"A": ["x", "y"], "B": {"z": None}})),
        ("own.json", TREE.to_json()),
        ("paths.json", json.dumps([["A", "x"], ["A", "y"], ["B", "z"]])),
        ("strings.json", json.dumps(["A/x", "A/y", "B/z"])),
        ("edges.tsv", "root\tA\nroot\tB\nA\tx\nA\ty\nB\tz\n"),
        ("named.csv", "parent,child\nroot,A\nroot,B\nA,x\nA,y\nB,z\n"),
        ("forest.csv", "child,parent\nA,\nB,\nx,A\ny,A\nz,B\n"),
        ("nodes.tsv", "node\tparent\tdepth\nr\t-1\t0\nA\tr\t1\nB\tr\t1\nx\tA\t2\ny\tA\t2\nz\tB\t2\n"),
        ("levels.csv", "level 1,level 2\nA,x\nA,y\nB,z\n"),
        ("paths.csv", "A,x\nA,y\nB,z\n"),
        ("paths.txt", "# a comment\nA/x\nA/y\nB/z\n"),
        ("path.txt", "path\nA/x\nA/y\nB/z\n"),
        ("tree", "A\tx\nA\ty\nB\tz\n"),
        ("tree", '{"A": ["x", "y"], "B": ["z"]}'),
    ],
)
def test_taxonomies_in_every_form_are_the_same_tree(file, name, content):
    for path in (file(name, content), file(name + ".gz", gzip.compress(content.encode()))):
        found = read_taxonomy(path)
        assert shape(found.hierarchy) == ["A/x", "A/y", "B/z"]
        assert found.aliases == {}


def test_nodes_may_have_numbers_and_names(file):
    rows = "node\tparent\tcode\n0\t-1\tROOT\n1\t0\tA\n2\t0\tB\n3\t1\tx\n4\t1\ty\n5\t2\tz\n"
    tree, aliases = read_taxonomy(file("a.tsv", rows), "code")
    assert sorted(tree.classes) == ["x", "y", "z"]
    assert aliases["4"] == "y"
    same = rows.replace("z", "x")
    tree, aliases = read_taxonomy(file("a.tsv", same), "code")
    assert sorted(tree.classes) == ["A/x", "A/y", "B/x"]
    assert (aliases["3"], aliases["5"]) == ("A/x", "B/x")
    assert sorted(read_taxonomy(file("a.tsv", same)).hierarchy.classes) == ["3", "4", "5"]
    forest = "id,parent,name\n1,,A\n2,,B\n3,1,x\n4,2,x\n"
    tree, aliases = read_taxonomy(file("a.csv", forest), "name")
    assert sorted(tree.classes) == ["A/x", "B/x"]
    assert aliases == {"1": "A", "2": "B", "3": "A/x", "4": "B/x"}


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.json", "{", "is no taxonomy"),
        ("a.json", "3", "is no taxonomy"),
        ("a.json", "[" * 100_000, "is no taxonomy"),
        ("a.json", '{"format": "nuptse.Hierarchy/1"}', "is missing"),
        ("a.csv", "", "it is empty"),
        ("a.csv", "parent,child\na,b\nb,a\n", "below itself"),
        ("a.csv", "parent,child\na,b\nc,b\n", "there twice"),
        ("a.csv", "parent,child\na\n", "1 fields"),
        ("a.csv", "parent,size\na,3\n", "none for the node itself"),
        ("a.csv", "a,b\nb,c\nc,a\n", "below itself"),
    ],
)
def test_taxonomies_that_make_no_sense(file, name, content, match):
    with pytest.raises(InputError, match=match):
        read_taxonomy(file(name, content))


def test_names_need_a_table_of_nodes(file):
    with pytest.raises(InputError, match="no column 'nme', but parent, child"):
        read_taxonomy(file("a.csv", "parent,child\na,b\n"), "nme")
    with pytest.raises(InputError, match="--names needs"):
        read_taxonomy(file("a.csv", "A,x\nA,y\n"), "code")
    with pytest.raises(UsageError, match="nothing for --names"):
        read_taxonomy(file("a.json", "{}"), "code")


def test_labels_that_are_paths_make_a_tree():
    assert tree_of_paths(["A/x", "A/y", "A/x"]).hierarchy.n_levels == 2
    with pytest.raises(InputError, match="make no tree"):
        tree_of_paths(["A//x"])


# Hostile files

HOSTILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NPZ = npz(data=[1.0, 2.0], indices=[0, 1], indptr=[0, 1, 2], shape=(2, 2), y=[1, 2])
STARTS = [
    b"",
    b"\x1f\x8b\x08",
    b"\xfd7zXZ\x00",
    b"BZh9",
    b"PK\x03\x04",
    b"PAR1",
    b"1 1:",
    b"a,label\n",
    b"{",
    b"[[",
    b"\xff\xfe",
]


@pytest.mark.parametrize("kind", [*READERS, "taxonomy", "taxonomy.json", "taxonomy.csv"])
@HOSTILE
@given(start=st.sampled_from(STARTS), content=st.binary(max_size=200))
@example(start=b"", content=b"\x00")
@example(start=b"a,label\n", content=b"\x00,x\n")
@example(start=b"1 1:", content=b"\xb2\n")
def test_any_bytes_are_data_or_a_clean_error(tmp_path, kind, start, content):
    path = tmp_path / "hostile.csv" if kind == "taxonomy.csv" else tmp_path / kind
    path.write_bytes(start + content)
    try:
        if kind.startswith("taxonomy"):
            read_taxonomy(str(path))
        else:
            ask(str(path), format=kind)
            ask(str(path), format=kind, labelled=False)
    except CommandError as error:
        assert str(error)  # noqa: PT017


@HOSTILE
@given(
    text=st.text(alphabet='ab,\t\n"1.:{}[] #/', max_size=60), kind=st.sampled_from(["csv", "tsv", "svmlight", "text"])
)
def test_texts_that_look_like_data_are_data_or_a_clean_error(tmp_path, text, kind):
    path = tmp_path / "data"
    path.write_text(text, encoding="utf-8")
    for more in ({"label": "a"}, {"header": False, "label": "1"}, {"labelled": False}):
        try:
            data = ask(str(path), format=kind, **({} if kind in {"svmlight", "text"} else more))
        except CommandError:
            continue
        assert len(data) > 0
        assert data.labels is None or len(data.labels) == len(data)
    try:
        read_taxonomy(str(path))
    except CommandError as error:
        assert "taxonomy" in str(error)  # noqa: PT017


@HOSTILE
@given(changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4), end=st.integers(0))
def test_changed_npz_files_are_data_or_a_clean_error(tmp_path, changes, end):
    whole = bytearray(NPZ)
    for place, value in changes:
        whole[place % len(whole)] = value
    path = tmp_path / "a.npz"
    for content in (whole, whole[: end % len(whole)]):
        path.write_bytes(content)
        try:
            ask(str(path))
        except CommandError as error:
            assert "a.npz" in str(error)  # noqa: PT017


def test_encrypted_and_odd_archives(file):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}\n")
        archive.writestr("y.npy", b"nothing")
    refused(file("a.npz", stream.getvalue()), "cannot be read as .npz")


def test_plain_files_that_begin_like_compressed_ones(file):
    assert read_bytes(file("a.txt", b"BZhello")) == b"BZhello"
