"""Fit a model to scikit-learn's handwritten digits and print how good its predictions are."""

import time

from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from nuptse import KernelClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)

print(f"digits: {len(X_train)} training points, {len(X_test)} test points, 64 pixels, 10 classes")
print(f"{'kernel':<8} {'accuracy':>8} {'log loss':>8} {'seconds':>8} {'iterations':>10}")
for kernel in ("rbf", "linear"):
    start = time.perf_counter()
    model = KernelClassifier(kernel, scale="auto").fit(X_train, y_train)
    seconds = time.perf_counter() - start
    probabilities = model.predict_proba(X_test)
    accuracy = accuracy_score(y_test, model.predict(X_test))
    loss = log_loss(y_test, probabilities)
    print(f"{kernel:<8} {accuracy:8.4f} {loss:8.4f} {seconds:8.3f} {model.n_iter_:10}")
