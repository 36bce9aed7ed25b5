"""Security schemes of an OpenAPI document as credentials by name."""

from collections.abc import Mapping
from typing import Any

from failwise.tools.openapi.schemas import Schemas, Unsupported
from failwise.vocabulary.records import record


@record
class Secured:
    """How an operation proves who calls: a credential's name and where its value goes."""

    credential: str | None = None
    header: str = "Authorization"
    form: str = "Bearer {}"
    query: str | None = None


OPEN = Secured()


def secured(
    schemas: Schemas,
    document: Mapping[str, Any],
    operation: Mapping[str, Any],
    names: Mapping[str, str | None],
) -> Secured:
    """What an operation needs, of the alternatives the first that can be met.

    `names`: scheme → the credential as it is registered; None: none is sent. Raises `Unsupported` where no
    alternative can be met.
    """
    wanted = operation.get("security", document.get("security"))
    if not isinstance(wanted, list) or not wanted:
        return OPEN
    problems: list[str] = []
    components = document.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
    optional = any(not alternative for alternative in wanted)
    for alternative in wanted:
        if not isinstance(alternative, Mapping) or not alternative:
            continue
        used = [name for name in alternative if names.get(name, name) is not None]
        if not used:
            return OPEN
        if len(used) > 1:
            problems.append(f"{' and '.join(used)} are needed together")
            continue
        try:
            scheme = schemas.resolved((schemes or {})[used[0]])
            return _scheme(names.get(used[0]) or used[0], used[0], scheme)
        except KeyError:
            problems.append(f"the security scheme {used[0]!r} is not defined")
        except Unsupported as error:
            problems.append(str(error))
    if optional:
        return OPEN
    raise Unsupported("; ".join(problems) or "its security requirement cannot be read")


def _scheme(credential: str, name: str, scheme: Mapping[str, Any]) -> Secured:
    kind, place = scheme.get("type"), scheme.get("in")
    if kind == "apiKey" and isinstance(scheme.get("name"), str):
        wire = scheme["name"]
        if place == "header":
            return Secured(credential, wire, "{}")
        if place == "query":
            return Secured(credential, query=wire)
        if place == "cookie":
            return Secured(credential, "Cookie", f"{wire}={{}}")
    if kind == "http":
        way = str(scheme.get("scheme", "")).lower()
        if way in ("bearer", "basic"):
            return Secured(credential, "Authorization", f"{way.title()} {{}}")
        raise Unsupported(
            f"the security scheme {name!r} is HTTP {way}: bearer and basic can be sent"
        )
    if kind in ("oauth2", "openIdConnect"):
        return Secured(credential)
    raise Unsupported(
        f"the security scheme {name!r} is {kind!r}: a header, query or cookie can be sent"
    )
