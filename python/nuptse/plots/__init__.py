"""Pictures of what a model does, drawn with matplotlib (`pip install nuptse[plots]`).

Every function takes the axes to draw on, or makes a figure of its own, and returns the axes. ``clf.report(X, y)`` shows
the same and more as a page, without matplotlib.
"""

from nuptse.plots._confidence import reject_curve, reliability
from nuptse.plots._learning import history, variances
from nuptse.plots._tree import tree_errors

__all__ = ["history", "reject_curve", "reliability", "tree_errors", "variances"]
