"""OpenAPI 3 documents as tools."""

from failwise.tools.openapi.operations import OpenApiTools, tools_from_openapi

__all__ = ["OpenApiTools", "tools_from_openapi"]
