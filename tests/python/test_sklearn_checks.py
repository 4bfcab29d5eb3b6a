"""scikit-learn's own checks of estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nuptse import KernelClassifier

# Copies of a point fall into several folds, where they tell on each other, a point of weight two into one.
LEARNED = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "folds of repeated points are other folds",
)


def expected_failures(estimator):
    return LEARNED if estimator.learn else {}


@parametrize_with_checks(
    [
        KernelClassifier(),
        KernelClassifier("linear"),
        KernelClassifier(learn=False),
        KernelClassifier("linear", learn=False),
        KernelClassifier(learn=False, tol=1e-10),
        KernelClassifier("linear", learn=False, tol=1e-10),
        KernelClassifier(scale="auto", learn=False, tol=1e-10),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
