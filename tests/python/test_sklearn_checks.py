"""scikit-learn's own checks of estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from nuptse import KernelClassifier


@parametrize_with_checks(
    [
        # Weights must act like repetitions to seven digits, so the fit must be that accurate.
        KernelClassifier(tol=1e-10),
        KernelClassifier("linear", tol=1e-10),
        KernelClassifier(scale="auto", tol=1e-10),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
