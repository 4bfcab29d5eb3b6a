"""scikit-learn's own checks of estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nuptse import KernelClassifier

# Weights must act like repetitions to seven digits, which a fit stopped at the default tolerance need not do: the two
# problems have different α, so they stop at different distances from the same minimum. With tol=1e-10 they agree.
STOPPED_EARLY = {
    "check_sample_weight_equivalence_on_dense_data": "tol=1e-3 is not accurate to seven digits",
    "check_sample_weight_equivalence_on_sparse_data": "tol=1e-3 is not accurate to seven digits",
}


# Copies of a point fall into several folds, where they tell on each other, a point of weight two into one.
LEARNED = dict.fromkeys(STOPPED_EARLY, "folds of repeated points are other folds")


def expected_failures(estimator):
    if estimator.learn:
        return LEARNED
    stopped_early = estimator.kernel == "linear" and estimator.tol == KernelClassifier().tol
    return STOPPED_EARLY if stopped_early else {}


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
