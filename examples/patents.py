"""Classify patents by IPC code: from raw text to decisions, and a picture of where in the tree errors happen.

docs/tutorials/patents.md explains the steps. NUPTSE_DATA is the folder that holds patents_ipc.
"""

import csv
import lzma
import os
import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from nuptse import Hierarchy, KernelClassifier, metrics
from nuptse.kernels import Linear
from nuptse.plots import tree_errors

PROJECT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("NUPTSE_DATA", PROJECT.parent / "shared" / "data")) / "patents_ipc"
PICTURE = PROJECT / "target" / "patents_errors.png"

if not (DATA / "docs.tsv.xz").exists() or not (DATA / "taxonomy.tsv").exists():
    print(f"no patents in {DATA}: set NUPTSE_DATA to the folder that holds patents_ipc")
    sys.exit()

# The tree: a string like "A/A01/A01B" for every subclass. A node is listed after its parent.
paths = {"0": ""}
with (DATA / "taxonomy.tsv").open(encoding="utf-8") as file:
    for row in csv.DictReader(file, delimiter="\t"):
        if row["parent"] != "-1":
            paths[row["node"]] = f"{paths[row['parent']]}/{row['code']}".lstrip("/")
tree = Hierarchy.parse([path for path in paths.values() if path.count("/") == 2])

# The documents: raw text, and the code of the subclass.
texts: dict[str, list[str]] = {"train": [], "test": []}
codes: dict[str, list[str]] = {"train": [], "test": []}
with lzma.open(DATA / "docs.tsv.xz", "rt", encoding="utf-8") as file:
    for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
        texts[row["split"]].append(row["text"])
        codes[row["split"]].append(paths[row["leaf"]])

vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
X_train = vectorizer.fit_transform(texts["train"])
X_test = vectorizer.transform(texts["test"])
print(f"patents: {len(texts['train'])} training and {len(texts['test'])} test documents, {X_train.shape[1]} words")
print(f"{tree!r}")

# One variance for every level of the tree, 300 each; without learn=False they would be learned, which takes longer. A
# loose tol halves the time of the fit.
start = time.perf_counter()
model = KernelClassifier(Linear(300.0), hierarchy=tree, share="level", learn=False, tol=0.01)
model.fit(X_train, codes["train"])
print(f"fitted in {time.perf_counter() - start:.1f} seconds\n")

# Probabilities do not depend on the loss; decisions do.
proba = model.predict_proba(X_test)
rank = metrics.reciprocal_rank(codes["test"], proba, labels=model.classes_)
log_loss = metrics.log_loss(codes["test"], proba, labels=model.classes_)
print(f"{'decisions for':<16} {'accuracy':>8} {'reciprocal rank':>16} {'log loss':>9} {'taxonomic loss':>15} ", end="")
print(f"{'parent accuracy':>16}")
decisions = {loss: model.predict(X_test, loss=loss) for loss in ("zero_one", "taxonomic")}
for loss, decided in decisions.items():
    accuracy = metrics.accuracy(codes["test"], decided)
    distance = metrics.taxonomic_loss(codes["test"], decided, hierarchy=tree)
    parents = metrics.parent_accuracy(codes["test"], decided, hierarchy=tree)
    print(f"{loss:<16} {accuracy:8.3f} {rank:16.3f} {log_loss:9.3f} {distance:15.3f} {parents:16.3f}")

# The first document that the two losses decide differently.
one = int((decisions["zero_one"] != decisions["taxonomic"]).argmax())
nodes = model.node_proba(X_test[one])[0]
print(f"\n{texts['test'][one][:100]}...")
print(f"true {codes['test'][one]}, zero_one {decisions['zero_one'][one]}, taxonomic {decisions['taxonomic'][one]}")
print(f"{'code':<12} {'probability':>11} {'of its class':>13} {'of its section':>15}")
for code in model.classes_[proba[one].argsort()[::-1][:5]]:
    section, ipc_class, _ = code.split("/")
    above = [nodes[model.hierarchy_.node_index(path)] for path in (f"{section}/{ipc_class}", section)]
    print(f"{code:<12} {proba[one, model.classes_ == code][0]:11.3f} {above[0]:13.3f} {above[1]:15.3f}")

try:
    ax = tree_errors(tree, codes["test"], decisions["taxonomic"])
except ImportError as error:
    print(f"\nno picture: {error}")
    sys.exit()
ax.set_title("Where patents are put wrong, by section, class and subclass")
PICTURE.parent.mkdir(exist_ok=True)
ax.figure.savefig(PICTURE, dpi=120)
print(f"\nwhere errors happen: {PICTURE.relative_to(PROJECT)}")
