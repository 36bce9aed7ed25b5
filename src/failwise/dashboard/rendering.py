"""Pages as bytes: templates, the files beside them, and one rendering for all who see the same."""

import functools
import hashlib
import json
import secrets
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from failwise.dashboard.view import View
from failwise.vocabulary.records import record

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC: Final[Mapping[str, str]] = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files beside the pages, and their types."""
MARK: Final = secrets.token_hex(16)
"""What stands in a rendering where each viewer's own form mark goes. Nobody else knows it, so no text of
a stranger can hold it."""


@record
class Shown:
    """What was rendered of `data`, which it keeps alive; `stamp` changes with it."""

    data: Any
    body: bytes
    stamp: str

    def tag(self, mark: str = "") -> str:
        """The entity tag (RFC 9110, 8.8.3) of what a viewer with this form mark is given."""
        return f'"{self.stamp}-{mark[:8]}"' if mark else f'"{self.stamp}"'

    def of(self, mark: str) -> bytes:
        """The page of a viewer with this form mark."""
        return self.body.replace(MARK.encode(), mark.encode())


def shown(data: Any, body: bytes) -> Shown:
    """A rendering with its stamp."""
    return Shown(data, body, hashlib.blake2b(body, digest_size=12).hexdigest())


def page(template: str, view: View, data: Mapping[str, Any]) -> Shown:
    """A page, for every viewer; the form mark of each is put in by `Shown.of`."""
    return shown(data, rendered(template, view, data).encode())


def twin(data: Mapping[str, Any]) -> Shown:
    """The same as JSON."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return shown(data, text.encode("utf-8", "backslashreplace"))


def rendered(template: str, view: View, data: Mapping[str, Any]) -> str:
    """A template, filled in."""
    return _environment().get_template(template).render(v=view, say=view.say, **data)


@functools.cache
def file(name: str) -> bytes:
    """One of `STATIC`."""
    return resources.files("failwise.dashboard").joinpath("static", name).read_bytes()


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("failwise.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["stamps"] = {name: _stamp(name) for name in STATIC}
    return made


def _stamp(name: str) -> str:
    """Changes with the file, so that browsers may keep it for ever."""
    return hashlib.sha256(file(name)).hexdigest()[:12]
