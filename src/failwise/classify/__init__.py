"""Classification: `Evidence` → `Failure`, or None where it was a success.

`Classifier` is the room's door; `classify_exception` and `classify_text` are it with its defaults.
"""

from typing import TYPE_CHECKING

from failwise.classify.classifier import Classifier

if TYPE_CHECKING:
    from failwise.vocabulary.failure import Failure

__all__ = ["Classifier", "classify_exception", "classify_text"]

_DEFAULT = Classifier()


def classify_exception(error: BaseException, *, tool: str = "", trail: bool = False) -> "Failure":
    """The failure that an exception means; an exception is never a success."""
    from failwise.evidence import from_exception

    failure = _DEFAULT.classify(from_exception(error), tool=tool, trail=trail)
    assert failure is not None
    return failure


def classify_text(text: str, *, tool: str = "", trail: bool = False) -> "Failure | None":
    """The failure that a log line or a pasted error tells of; None where it tells of none."""
    from failwise.evidence import from_text

    return _DEFAULT.classify(from_text(text), tool=tool, trail=trail)
