"""An upstream's tools as the host and the runtime know them: names, declarations, and who made them."""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from failwise.connect.proxy.calling import caller
from failwise.connect.proxy.settings import ToolSettings
from failwise.vocabulary.spec import ToolSpec

if TYPE_CHECKING:
    from failwise.connect.proxy.upstream import Upstream

LONGEST_NAME: Final = 64
"""Characters that model providers allow in a tool's name."""
_BARRED: Final = re.compile(r"[^0-9A-Za-z_-]")


def shown_name(prefix: str, name: str) -> str:
    """The name the host sees: allowed characters, at most `LONGEST_NAME`; cut ones end in a digest."""
    whole = _BARRED.sub("_", prefix + name)
    if whole == prefix + name and len(whole) <= LONGEST_NAME:
        return whole
    digest = hashlib.sha256((prefix + "\0" + name).encode()).hexdigest()[:6]
    return f"{whole[: LONGEST_NAME - 7]}_{digest}"


class Declared:
    """What holds for a tool, and by whom it was said: ``policy``, ``server``, or nobody.

    The file's word beats the server's annotations. An annotation that narrows is believed of anybody;
    one that would allow a repeat only of a trusted server (MCP: "clients must consider tool annotations to be
    untrusted unless they come from trusted servers").
    """

    __slots__ = ("by", "destructive", "idempotent", "read_only")

    def __init__(
        self, settings: ToolSettings, hints: types.ToolAnnotations | None, trusted: bool
    ) -> None:
        self.by: dict[str, str] = {}
        read_only = hints.read_only_hint if hints else None
        idempotent = hints.idempotent_hint if hints else None
        destructive = hints.destructive_hint if hints else None
        self.read_only = self._of("read_only", settings.read_only, read_only, read_only, trusted)
        self.idempotent = self._of(
            "idempotent", settings.idempotent, idempotent, idempotent, trusted
        )
        self.destructive = self._of(
            "destructive", settings.destructive, destructive, destructive is False, trusted
        )
        if self.read_only and destructive and self.by["read_only"] == "server":
            self.read_only = None  # it contradicts itself
            self.by["read_only"] = "server, contradicted"

    def _of(
        self, name: str, said: bool | None, hint: bool | None, widens: Any, trusted: bool
    ) -> bool | None:
        if said is not None:
            self.by[name] = "policy"
            return said
        if hint is None:
            return None
        if widens and not trusted:
            self.by[name] = "server, not trusted"
            return None
        self.by[name] = "server"
        return hint


def spec_of(
    upstream: "Upstream", tool: types.Tool, name: str, result_limit: int
) -> tuple[ToolSpec, Mapping[str, str]]:
    """The tool for the runtime, and who declared what."""
    server = upstream.settings
    said = server.of(tool.name)
    declared = Declared(said, tool.annotations, server.trust_annotations)
    timeout = said.timeout or server.timeout
    call: Any = caller(
        upstream,
        tool.name,
        timeout=timeout,
        timeout_limit=max(timeout, said.timeout_limit or server.timeout_limit),
        result_limit=result_limit,
        key_argument=said.idempotency_key,
    )
    spec = ToolSpec(
        name,
        tool.description or "",
        schema=tool.input_schema,
        call_async=call,
        read_only=declared.read_only,
        idempotent=declared.idempotent,
        destructive=declared.destructive,
        fallback=said.fallback,
        idempotency_key=said.idempotency_key,
        profile=server.profile,
        upstream=server.name,
        policy=said.policy,
    )
    return spec, declared.by
