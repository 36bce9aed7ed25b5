"""What the proxy passes through as it is: resources, prompts, completion. Only tools are calls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import mcp_types as types
from mcp import MCPError

from failwise.connect.proxy.hosts import Hosts
from failwise.connect.proxy.tools import shown_name
from failwise.connect.proxy.upstream import Upstream

logger = logging.getLogger("failwise")

_MOST_LISTED: Final = 10_000
_QUICK: Final = 5.0
"""Seconds an upstream has to list: a slow one hides nobody else."""


class PassedThrough:
    """Handlers of the front's server. `prefix` is what stands before an upstream's names, `ready` waits for
    those that are starting. Where each resource and prompt comes from is known from the last listing."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        hosts: Hosts,
        prefix: Callable[[Upstream], str],
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self._upstreams, self._hosts = upstreams, hosts
        self._prefix, self._ready = prefix, ready
        self._resources: dict[str, Upstream] = {}
        self._prompts: dict[str, tuple[Upstream, str]] = {}

    async def _from_all(
        self, method: str, capability: str, field: str
    ) -> list[tuple[Upstream, Any]]:
        """A list from every upstream that offers it; one that fails or is slow hides nobody else."""
        await self._ready()

        async def one(upstream: Upstream) -> list[tuple[Upstream, Any]]:
            client = upstream.client
            if client is None or getattr(client.server_capabilities, capability) is None:
                return []
            found: list[tuple[Upstream, Any]] = []
            cursor: str | None = None
            try:
                async with asyncio.timeout(_QUICK):
                    while True:
                        page = await getattr(client.session, method)(
                            params=types.PaginatedRequestParams(cursor=cursor)
                        )
                        found += [(upstream, item) for item in getattr(page, field)]
                        cursor = page.next_cursor
                        if cursor is None or len(found) >= _MOST_LISTED:
                            return found
            except (MCPError, TimeoutError) as error:
                if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                    logger.warning("MCP server %s: %s: %s", upstream.name, method, error)
                return found

        lists = await asyncio.gather(*(one(upstream) for upstream in self._upstreams))
        return [item for found in lists for item in found]

    async def list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        self._hosts.of(context)
        found = await self._from_all("list_resources", "resources", "resources")
        self._resources = {str(item.uri): upstream for upstream, item in reversed(found)}
        return types.ListResourcesResult(resources=[item for _, item in found])

    async def list_templates(self, context: Any, params: Any) -> types.ListResourceTemplatesResult:
        found = await self._from_all("list_resource_templates", "resources", "resource_templates")
        return types.ListResourceTemplatesResult(resource_templates=[item for _, item in found])

    async def read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        known = self._resources.get(uri)
        candidates = [known] if known is not None else list(self._upstreams)
        refusal: MCPError | None = None
        for upstream in candidates:
            client = upstream.client
            if client is None or client.server_capabilities.resources is None:
                continue
            try:
                return await client.session.read_resource(
                    uri,
                    input_responses=params.input_responses,
                    request_state=params.request_state,
                    allow_input_required=True,
                )
            except MCPError as error:
                refusal = refusal or error
        raise refusal or MCPError(types.INVALID_PARAMS, f"no server has the resource {uri}")

    async def list_prompts(self, context: Any, params: Any) -> types.ListPromptsResult:
        self._hosts.of(context)
        found = await self._from_all("list_prompts", "prompts", "prompts")
        names = [shown_name(self._prefix(upstream), item.name) for upstream, item in found]
        self._prompts = {
            name: (upstream, item.name) for name, (upstream, item) in zip(names, found, strict=True)
        }
        prompts = [
            item.model_copy(update={"name": name})
            for name, (_, item) in zip(names, found, strict=True)
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, context: Any, params: types.GetPromptRequestParams) -> Any:
        if params.name not in self._prompts:
            await self.list_prompts(context, None)
        client, name = self._prompt(params.name)
        return await client.session.get_prompt(
            name,
            params.arguments,
            input_responses=params.input_responses,
            request_state=params.request_state,
            allow_input_required=True,
        )

    def _prompt(self, name: str) -> tuple[Any, str]:
        upstream, own = self._prompts.get(name, (None, name))
        client = upstream.client if upstream is not None else None
        if client is None:
            raise MCPError(types.INVALID_PARAMS, f"no server that is running has the prompt {name}")
        return client, own

    async def complete(self, context: Any, params: types.CompleteRequestParams) -> Any:
        reference = params.ref
        if isinstance(reference, types.PromptReference):
            client, name = self._prompt(reference.name)
            reference = reference.model_copy(update={"name": name})
        else:
            owner = self._resources.get(str(reference.uri))
            candidates = [owner] if owner is not None else self._upstreams
            client = next((u.client for u in candidates if u.client is not None), None)
            if client is None:
                raise MCPError(types.INVALID_PARAMS, "no server that is running can complete this")
        given = {params.argument.name: params.argument.value}
        context_arguments = params.context.arguments if params.context is not None else None
        return await client.session.complete(reference, given, context_arguments)
