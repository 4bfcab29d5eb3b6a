"""Tabular data sets, cut at random into points to learn from and points to test with."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

# How many points to learn from, at most; there are far more of some than it takes to see what is to be seen.
SIZES = {
    "digits": 1200,
    "dna": 2200,
    "eeg": 3000,
    "letter": 2400,
    "mnist": 2400,
    "ocr_letters": 2400,
    "satimage": 4000,
    "segment": 1600,
    "spam": 3600,
    "vehicle": 600,
}
TESTS = 8000


def whole(name, folder):
    """Return the inputs and classes of all points."""
    if name == "digits":
        return load_digits(return_X_y=True)
    if name in {"satimage", "mnist"}:
        z = np.load(folder / name / f"{name}.npz")
        X, y = np.concatenate([z["X_train"], z["X_test"]]), np.concatenate([z["y_train"], z["y_test"]])
        return X.reshape(len(y), -1).astype(float), y
    if name == "ocr_letters":
        z = np.load(folder / name / f"{name}.npz")
        return np.unpackbits(z["X_bits"], axis=1).astype(float), z["y"]
    if name in {"eeg", "spam"}:
        z = np.load(folder / "cutajar2016" / "cutajar2016.npz")
        return z[f"{name}_X"].astype(float), z[f"{name}_y"] > 0
    z = np.load(folder / "multiclass_tabular" / "multiclass_tabular.npz")
    parts = [part for part in ("train", "test") if f"{name}_X_{part}" in z]
    X, y = (np.concatenate([z[f"{name}_{kind}_{part}"] for part in parts]) for kind in "Xy")
    return X.astype(float), y


def tabular(name, folder, seed):
    """Draw points to learn from and points to test with; inputs have the scale of the former."""
    X, y = whole(name, folder)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: SIZES[name]], order[SIZES[name] :][:TESTS]
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    # One scale for all pixels: those at the rim hardly ever vary.
    deviation = deviation.max() if name in {"digits", "mnist"} else np.where(deviation > 0, deviation, 1.0)
    X, y = (X - mean) / deviation, y.astype(np.int64)
    return X[train], y[train], X[test], y[test]
