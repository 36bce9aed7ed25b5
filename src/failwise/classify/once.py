"""One failure says the same text in several places: it passes the redactor once."""

from typing import Any, Protocol

from failwise.redaction import Redactor


class Border(Protocol):
    """What this room asks of a redactor."""

    def text(self, text: str) -> str:
        """The text without secrets."""

    def data(self, data: Any) -> Any:
        """The data without secrets."""

    def named(self, name: str, value: Any) -> Any:
        """The value of a thing of this name, without secrets."""


class OnceRedactor:
    """A redactor for the length of one failure; nothing is kept beyond it."""

    __slots__ = ("_redactor", "_texts")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._texts: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without secrets."""
        clean = self._texts.get(text)
        if clean is None:
            clean = self._texts[text] = self._redactor.text(text)
            self._texts[clean] = clean
        return clean

    def data(self, data: Any) -> Any:
        """The data without secrets."""
        return self._redactor.data(data)

    def named(self, name: str, value: Any) -> Any:
        """The value of a thing of this name, without secrets."""
        return self._redactor.named(name, value)
