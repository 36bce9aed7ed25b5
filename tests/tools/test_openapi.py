"""OpenAPI documents as tools: schemas, requests, declarations, refusals, and what is left out."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import failwise
from failwise.faults import Fault, FaultServer
from failwise.tools.openapi import tools_from_openapi

SHOP = """
openapi: 3.0.3
info: {title: Corner Shop, version: 1.0.0}
servers:
  - url: https://{region}.shop.example/v1/
    variables: {region: {default: eu}}
security: [{token: []}]
paths:
  /products:
    get:
      operationId: listProducts
      summary: Search the catalogue
      tags: [catalogue]
      parameters:
        - {name: q, in: query, required: true, schema: {type: string}, description: What to look for}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: "filter", in: query, style: deepObject, schema: {type: object}}
        - {name: X-Tenant, in: header, schema: {type: string, nullable: true}}
        - {$ref: "#/components/parameters/Limit"}
      responses:
        "200": {description: ok, content: {application/json: {schema: {type: array}}}}
  /orders:
    post:
      operationId: createOrder
      description: Place an order.
      parameters:
        - {name: Idempotency-Key, in: header, schema: {type: string}}
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
      responses:
        "201": {description: made}
        4XX: {$ref: "#/components/responses/Refused"}
  /orders/{order-id}/lines:
    parameters:
      - {name: order-id, in: path, required: true, schema: {type: string}}
    put:
      operationId: setLines
      requestBody: {required: true, content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Line"}}}}}
      responses: {"204": {description: done}}
    delete:
      summary: Remove all lines
      deprecated: true
      responses: {"204": {description: done}}
  /search:
    post:
      operationId: search
      security: []
      x-failwise: {read_only: true, timeout: 5}
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {q: {type: string}, on: {type: string, enum: [no, yes]}}}}}}
      responses: {default: {description: any}}
  /weather:
    get:
      operationId: weather
      security: [{key: []}]
      parameters: [{name: city, in: query, schema: {type: string}}]
      responses: {"200": {description: ok, content: {text/plain: {}}}}
  /upload:
    post:
      operationId: upload
      requestBody: {content: {multipart/form-data: {schema: {type: object}}}}
      responses: {"200": {description: ok}}
  /elsewhere:
    get:
      operationId: elsewhere
      parameters: [{$ref: "other.yaml#/Limit"}]
      responses: {"200": {description: ok}}
components:
  parameters:
    Limit: {name: limit, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 100}}
  responses:
    Refused:
      description: no
      content: {application/json: {schema: {$ref: "#/components/schemas/Problem"}}}
  schemas:
    Order:
      type: object
      required: [sku, number]
      properties:
        number: {type: string, readOnly: true}
        sku: {type: string}
        lines: {type: array, items: {$ref: "#/components/schemas/Line"}}
        note: {type: string, nullable: true, example: gift}
    Line:
      type: object
      properties:
        sku: {type: string}
        parts: {type: array, items: {$ref: "#/components/schemas/Line"}}
    Problem:
      type: object
      properties:
        outcome:
          type: object
          properties:
            refusal: {type: object, properties: {reason_code: {type: string}, text: {type: string}}}
  securitySchemes:
    token: {type: http, scheme: bearer}
    key: {type: apiKey, in: query, name: appid}
"""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def runtime() -> Iterator[failwise.Runtime]:
    with failwise.Runtime(":memory:", jitter=0) as made:
        made.credential("token", get=lambda: "bearer-token-1")
        made.credential("key", get=lambda: "app-key-12345")
        yield made


def spec_of(tools: Any, name: str) -> failwise.ToolSpec:
    found: failwise.ToolSpec = next(tool for tool in tools if tool.name == name)
    return found


def test_each_operation_becomes_a_tool(
    runtime: failwise.Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """Name, description, schema, and what the method says of repetition; the rest is told of."""
    with caplog.at_level(logging.WARNING, "failwise"):
        tools = runtime.add_openapi(SHOP)
    assert [tool.name for tool in tools] == [
        "listProducts", "createOrder", "setLines", "delete_orders_order-id_lines", "search", "weather",
    ]  # fmt: skip
    listing = spec_of(tools, "listProducts")
    assert listing.description == "Search the catalogue"
    assert listing.read_only is True
    assert listing.credential == "token"
    assert listing.upstream == "eu.shop.example"
    assert listing.schema == {
        "type": "object",
        "properties": {
            "q": {"type": "string", "description": "What to look for"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object"},
            "X-Tenant": {"type": ["string", "null"]},
            "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100},
        },
        "required": ["q"],
        "additionalProperties": False,
    }
    order = spec_of(tools, "createOrder")
    assert order.idempotency_key == "Idempotency-Key"
    assert order.read_only is None
    assert order.idempotent is None
    assert order.schema is not None
    assert order.schema["properties"] == {
        "sku": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "note": {"type": ["string", "null"]},
    }
    assert order.schema["required"] == ["sku"]
    assert order.schema["$defs"]["Line"]["properties"]["parts"]["items"] == {"$ref": "#/$defs/Line"}
    assert spec_of(tools, "setLines").idempotent is True
    gone = spec_of(tools, "delete_orders_order-id_lines")
    assert gone.description == "Remove all lines\n\n(deprecated)"
    search = spec_of(tools, "search")
    assert (search.read_only, search.timeout, search.credential) == (True, 5, None)
    assert search.schema is not None
    assert search.schema["properties"]["on"] == {"type": "string", "enum": ["no", "yes"]}
    assert "POST /upload is left out" in caplog.text
    assert "GET /elsewhere is left out" in caplog.text
    assert "only references within the document" in caplog.text


def test_requests_are_as_the_document_says(server: FaultServer, runtime: failwise.Runtime) -> None:
    """Each argument in its place and style, and the credential where its scheme has it."""
    runtime.add_openapi(SHOP, base_url=server.url("/v1"))
    server.route("GET", "/v1/products", Fault.json([]))
    server.route("POST", "/v1/orders", Fault.json({"number": "1"}, 201))
    server.route("PUT", "/v1/orders/{id}/lines", Fault.empty(204))
    server.route("POST", "/v1/search", Fault.json({}))
    server.route("GET", "/v1/weather", Fault.text("sunny"))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("listProducts", {
            "q": "a b", "tags": ["x", "y"], "ids": [1, 2], "filter": {"colour": "red"},
            "X-Tenant": "t1", "limit": 5,
        }),
        ("createOrder", {"sku": "A-1", "note": None, "lines": [{"sku": "B"}]}),
        ("setLines", {"order-id": "o 7", "body": [{"sku": "A"}]}),
        ("search", {"q": "ä", "on": "no"}),
        ("weather", {"city": "Bern"}),
    ]  # fmt: skip
    for name, arguments in calls:
        result = runtime.call_sync(name, arguments)
        assert result.success, (name, result.failure)
    listed, made, put, searched, weather = server.requests
    assert listed.headers["authorization"] == "Bearer bearer-token-1"
    assert listed.headers["x-tenant"] == "t1"
    assert sorted(listed.target.partition("?")[2].split("&")) == [
        "filter[colour]=red", "ids=1%2C2", "limit=5", "q=a%20b", "tags=x", "tags=y",
    ]  # fmt: skip
    assert made.json == {"sku": "A-1", "note": None, "lines": [{"sku": "B"}]}
    assert made.idempotency_key
    assert put.target == "/v1/orders/o%207/lines"
    assert put.json == [{"sku": "A"}]
    assert searched.body == b"q=%C3%A4&on=no"
    assert "authorization" not in searched.headers
    assert weather.target == "/v1/weather?city=Bern&appid=app-key-12345"


def test_arguments_are_checked_against_the_documents_schema(runtime: failwise.Runtime) -> None:
    """What the document forbids goes back to the model, and is not sent."""
    runtime.add_openapi(SHOP, base_url="http://127.0.0.1:9")
    result = runtime.call_sync("listProducts", {"q": "a", "limit": 0})
    assert result.failure is not None
    assert result.failure.code == "model_output.schema_violation"
    assert "limit" in str(result.failure.details)
    result = runtime.call_sync("createOrder", {"quantity": 2})
    assert result.failure is not None
    assert result.failure.code == "model_output.schema_violation"


def test_error_schemas_tell_where_a_refusal_speaks(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Code and message stand where only this document says; without it they are not found."""
    said = {"reason_code": "E-SOLD", "text": "Nothing left of A-1"}
    refused = {"outcome": {"refusal": said}}
    server.route("POST", "/orders", Fault.json(refused, 409))
    runtime.add(failwise.HttpTool("plain", "POST", server.url("/orders")))
    result = runtime.call_sync("plain", {"sku": "A-1"})
    assert result.failure is not None
    assert result.failure.provider_code is None
    runtime.add_openapi(SHOP, base_url=server.url())
    result = runtime.call_sync("createOrder", {"sku": "A-1"})
    assert result.failure is not None
    assert result.failure.provider_code == "E-SOLD"
    assert result.failure.message == "Nothing left of A-1"
    found = tools_from_openapi(SHOP).profile
    assert found is not None
    assert found["fields"] == {
        "code": ["outcome.refusal.reason_code"], "message": ["outcome.refusal.text"],
    }  # fmt: skip


def test_an_api_with_a_profile_keeps_it() -> None:
    """What the package knows of a host is more than its schemas say."""
    found = tools_from_openapi(SHOP, base_url="https://api.stripe.com")
    assert found.profile is None
    assert all(tool.profile is None for tool in found.tools)


def test_include_exclude_and_prefix() -> None:
    """By tool name, path, method and tag."""

    def names(**options: Any) -> list[str]:
        return [tool.name for tool in tools_from_openapi(SHOP, **options).tools]

    assert names(include="tag:catalogue") == ["listProducts"]
    assert names(include=["POST *"], exclude=["search"]) == ["createOrder"]
    assert names(include="/orders*", prefix="shop_") == [
        "shop_createOrder", "shop_setLines", "shop_delete_orders_order-id_lines",
    ]  # fmt: skip
    with pytest.raises(failwise.UsageError, match="no operation is left; there are listProducts"):
        names(include="nothing*")


def test_credentials_have_the_names_they_are_registered_by() -> None:
    """A scheme's name is the document's; None sends nothing."""
    found = tools_from_openapi(SHOP, credentials={"token": "shop", "key": None})
    assert spec_of(found.tools, "createOrder").credential == "shop"
    assert spec_of(found.tools, "weather").credential is None


@pytest.mark.parametrize(
    ("scheme", "told"),
    [
        ({"type": "http", "scheme": "digest"}, "HTTP digest"),
        ({"type": "mutualTLS"}, "mutualTLS"),
        (None, "not defined"),
    ],
)
def test_security_that_cannot_be_met_leaves_the_operation_out(scheme: Any, told: str) -> None:
    """With the reason; an alternative that can be met is taken."""
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "servers": [{"url": "https://a.example"}],
        "paths": {"/a": {"get": {"security": [{"odd": []}], "responses": {}}}},
        "components": {"securitySchemes": {"odd": scheme} if scheme else {}},
    }
    found = tools_from_openapi(document)
    assert not found.tools
    assert told in found.skipped[0][1]
    document["components"]["securitySchemes"]["plain"] = {
        "type": "apiKey", "in": "header", "name": "X-Key",
    }  # fmt: skip
    document["paths"]["/a"]["get"]["security"].append({"plain": []})
    assert tools_from_openapi(document).tools[0].credential == "plain"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("swagger: '2.0'\n", "convert it to OpenAPI 3"),
        ("openapi: 4.0.0\n", "OpenAPI 3.0 or 3.1 is needed"),
        ("- a\n- b\n", "its root is no mapping"),
        ("openapi: 3.0.0\npaths: []\n", "paths"),
        ("a: [\n", "not YAML"),
        ('{"openapi": "3.0.0",\n', "not JSON"),
        ("a: &a [x]\nb: &b [*a,*a]\n" + "c: [" * 250 + "]" * 250 + "\n", "nested too deep"),
    ],
)
def test_documents_that_cannot_be_read_are_told_of(text: str, told: str) -> None:
    """In words that say what to do."""
    with pytest.raises(failwise.ConfigurationError, match=told):
        tools_from_openapi(text)


def test_a_bomb_of_aliases_is_refused() -> None:
    """A few lines of YAML that stand for gigabytes."""
    lines = ["openapi: 3.0.0", "x-0: &n0 [1,1,1,1,1,1,1,1,1]"]
    for number in range(1, 12):
        alias = ",".join([f"*n{number - 1}"] * 9)
        lines.append(f"x-{number}: &n{number} [{alias}]")
    with pytest.raises(failwise.ConfigurationError, match="too large"):
        tools_from_openapi("\n".join(lines))


def test_urls_and_missing_files_are_refused(tmp_path: Path) -> None:
    """Nothing is fetched; a file is named with its line."""
    with pytest.raises(failwise.UsageError, match="nothing is fetched"):
        tools_from_openapi("https://api.example/openapi.json")
    with pytest.raises(failwise.ConfigurationError, match="cannot be read"):
        tools_from_openapi(tmp_path / "no.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"openapi": "3.0.0",\n "paths": }\n', "utf-8")
    with pytest.raises(failwise.ConfigurationError, match=r"broken\.json:2: not JSON"):
        tools_from_openapi(broken)
    good = tmp_path / "shop.yaml"
    good.write_text(SHOP, "utf-8")
    assert tools_from_openapi(good).tools


def test_options_that_are_not_known_are_refused() -> None:
    """An unknown option, a server that is no address."""
    with pytest.raises(failwise.UsageError, match="unknown option"):
        tools_from_openapi(SHOP, retries=3)
    found = tools_from_openapi(SHOP.replace("https://{region}.shop.example", ""))
    assert "give base_url" in found.skipped[0][1]


def test_nothing_is_registered_where_a_name_is_taken(runtime: failwise.Runtime) -> None:
    """All or none."""

    @runtime.tool(name="search", read_only=True)
    def search() -> None:
        """Search."""

    with pytest.raises(failwise.UsageError, match="give prefix="):
        runtime.add_openapi(SHOP)
    assert list(runtime.tools) == ["search"]
    assert len(runtime.add_openapi(SHOP, prefix="shop_")) == 6


def test_a_modern_document_with_unions_and_merged_bodies() -> None:
    """OpenAPI 3.1: schemas as they are; ``allOf`` is one body, ``oneOf`` one argument."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Zoo", "version": "1"},
        "servers": [{"url": "https://zoo.example"}],
        "paths": {
            "/animals/{id}": {
                "patch": {
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/merge-patch+json": {
                                "schema": {
                                    "allOf": [
                                        {"$ref": "#/components/schemas/Named"},
                                        {"properties": {"age": {"type": ["integer", "null"]}}},
                                    ]
                                }
                            }
                        },
                    },
                    "responses": {"200": {"description": "ok"}},
                },
                "post": {
                    "requestBody": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "oneOf": [
                                        {"$ref": "#/components/schemas/Named"},
                                        {"type": "string"},
                                    ]
                                }
                            }
                        }
                    },
                    "responses": {"200": {"description": "ok"}},
                },
            }
        },
        "components": {
            "schemas": {
                "Named": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
                }
            }
        },
    }
    patch, post = sorted(tools_from_openapi(document).tools, key=lambda tool: tool.name)
    assert patch.schema is not None
    assert post.schema is not None
    # `id` is a parameter and a property of the body: the body is then one argument
    assert set(patch.schema["properties"]) == {"id", "body"}
    assert set(post.schema["properties"]) == {"id", "body"}
    assert "body" not in post.schema["required"]
    document["paths"]["/animals/{id}"]["patch"]["requestBody"]["content"][  # type: ignore[index]
        "application/merge-patch+json"
    ]["schema"]["allOf"][0] = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    merged = next(t for t in tools_from_openapi(document).tools if t.name.startswith("patch"))
    assert merged.schema is not None
    assert set(merged.schema["properties"]) == {"id", "name", "age"}
    assert merged.schema["required"] == ["id", "name"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["$ref", "type", "properties", "in", "name", "schema", "content", "application/json",
             "parameters", "requestBody", "responses", "get", "post", "allOf", "required", "200",
             "security", "style", "explode", "nullable", "items", "servers", "url"]
        ),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["/a", "/b/{c}"]), JSON, max_size=2), JSON)
def test_any_document_gives_tools_or_reasons(paths: Any, components: Any) -> None:
    """Whatever stands in it: tools, or an error of ours; never another exception."""
    document = {
        "openapi": "3.0.0", "paths": paths, "components": components,
        "servers": [{"url": "https://a.example"}],
    }  # fmt: skip
    try:
        found = tools_from_openapi(document)
    except failwise.UsageError:
        return
    for tool in found.tools:
        json.dumps(tool.schema)
