"""Pictures of what a model does, drawn with matplotlib (`pip install nuptse[plots]`).

Every function takes the axes to draw on, or makes a figure of its own, and returns the axes.
"""

from nuptse.plots._tree import tree_errors

__all__ = ["tree_errors"]
