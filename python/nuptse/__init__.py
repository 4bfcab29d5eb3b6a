"""Kernel classification with many, structured classes, tuned by itself, with honest probabilities."""

from nuptse import datasets, kernels, metrics, plots, report
from nuptse._core import MemoryLimitError, __version__
from nuptse.classifier import KernelClassifier, load
from nuptse.hierarchy import Hierarchy
from nuptse.one_vs_rest import OneVsRestKernelClassifier
from nuptse.text import TextClassifier

__all__ = [
    "Hierarchy",
    "KernelClassifier",
    "MemoryLimitError",
    "OneVsRestKernelClassifier",
    "TextClassifier",
    "__version__",
    "datasets",
    "kernels",
    "load",
    "metrics",
    "plots",
    "report",
]
