"""XML bodies, read within bounds. A document type or an entity is refused, so nothing can expand."""

from dataclasses import dataclass, field

_LENGTH = 256_000
_DEPTH = 32
_ELEMENTS = 5_000


@dataclass(slots=True)
class Element:
    """One element: its name without namespace, its own text, its children in order."""

    name: str
    text: str = ""
    children: "list[Element]" = field(default_factory=list)


class _Refused(Exception):
    pass


def parse(text: str) -> Element | None:
    """The root element, or None for what is no XML, is a web page, or passes the bounds."""
    start = text[:200].lstrip("\ufeff \t\r\n").lower()
    if not start.startswith("<") or start.startswith(("<!", "<html")) or len(text) > _LENGTH:
        return None
    from xml.parsers import expat

    reader = expat.ParserCreate()
    root = Element("")
    open_elements = [root]
    count = 0

    def refuse(*_: object) -> None:
        raise _Refused

    def begin(name: str, _attributes: object) -> None:
        nonlocal count
        count += 1
        if count > _ELEMENTS or len(open_elements) > _DEPTH:
            raise _Refused
        element = Element(name.rpartition(":")[2])
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        open_elements.pop()

    def characters(data: str) -> None:
        open_elements[-1].text += data

    reader.StartDoctypeDeclHandler = refuse
    reader.EntityDeclHandler = refuse
    reader.StartElementHandler = begin
    reader.EndElementHandler = end
    reader.CharacterDataHandler = characters
    reader.buffer_text = True
    try:
        reader.Parse(text, True)
    except (expat.ExpatError, _Refused, ValueError):
        return None
    return root.children[0] if root.children else None
