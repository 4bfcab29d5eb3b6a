"""Model files as commands see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import nuptse
from nuptse._cli.errors import ModelError
from nuptse._cli.labels import KnownLabels
from nuptse._cli.opening import STDIN
from nuptse.text import TextClassifier

if TYPE_CHECKING:
    from nuptse import KernelClassifier
    from nuptse._cli.dataset import Dataset

#: The attribute that carries what the command line knows of the data a model was trained on.
ATTRIBUTE = "trained_on_"


@dataclass(frozen=True)
class Model:
    """A fitted estimator, and what is known of the data it was trained on."""

    estimator: KernelClassifier | TextClassifier
    #: plain values by name: format, label, text, first_column, aliases; any of them may be missing
    trained_on: dict[str, Any]

    @property
    def classifier(self) -> KernelClassifier:
        """The classifier itself, behind the words of a text classifier."""
        return self.estimator.classifier_ if isinstance(self.estimator, TextClassifier) else self.estimator

    @property
    def takes_text(self) -> bool:
        """Whether inputs are documents."""
        return isinstance(self.estimator, TextClassifier)

    @property
    def labels(self) -> KnownLabels:
        """The labels that it knows."""
        aliases = self.trained_on.get("aliases", {})
        return KnownLabels(self.classifier.classes_, self.classifier.hierarchy_, aliases)

    @property
    def columns(self) -> list[str] | None:
        """The names of the inputs, where they have any."""
        names = getattr(self.classifier, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def words(self) -> list[str] | None:
        """The names of the inputs, or the words of a text classifier."""
        return self.estimator.words_ if isinstance(self.estimator, TextClassifier) else self.columns

    def text_of(self, name: str) -> str | None:
        """Return what is known under a name, if it is a text."""
        value = self.trained_on.get(name)
        return value if isinstance(value, str) else None

    def inputs(self, data: Dataset) -> Any:
        """Return data as the classifier takes it."""
        return self.estimator.transform(data.X) if isinstance(self.estimator, TextClassifier) else data.X


def load(path: str) -> Model:
    """Load a model file."""
    if path == STDIN:
        raise ModelError("a model cannot be read from standard input; give the name of its file")
    try:
        estimator = nuptse.load(path)
    except (ValueError, OSError) as error:
        raise ModelError(str(error)) from error
    return Model(estimator, _checked(getattr(estimator, ATTRIBUTE, None)))


def _checked(notes: Any) -> dict[str, Any]:
    """Return what makes sense of the notes in a file, which anybody may have written."""
    if not isinstance(notes, dict):
        return {}
    known = {name: notes.get(name) for name in ("format", "label", "text", "first_column")}
    plain: dict[str, Any] = {
        name: value for name, value in known.items() if value is None or isinstance(value, str | int)
    }
    aliases = notes.get("aliases")
    if isinstance(aliases, dict):
        pairs = aliases.items()
        plain["aliases"] = {one: other for one, other in pairs if isinstance(one, str) and isinstance(other, str)}
    return plain
