"""The schema that is read from a function's signature, and its conversion back to Python."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import typing
import uuid
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.tools.function import function_tool
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.spec import CallContext


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Weight(enum.Enum):
    LIGHT = 1
    HEAVY = 2


class Origin(enum.Enum):
    HERE = (0, object())
    THERE = (1, object())


class Options(TypedDict):
    since: datetime.date
    deep: NotRequired[bool]


@dataclasses.dataclass
class Point:
    """A point.

    Args:
        x: how far right
    """

    x: int
    y: float = 0.0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    name: str
    children: list["Tree"] = dataclasses.field(default_factory=list)


UserId = NewType("UserId", str)


def parameter_schema(annotation: Any) -> dict[str, Any]:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    schema = function_tool(tool).schema
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(dict(schema))
    found: dict[str, Any] = schema["properties"]["value"]
    return found


def converted(annotation: Any, value: Any) -> Any:
    def tool(value: Any) -> Any:
        return value

    tool.__annotations__["value"] = annotation
    spec = function_tool(tool)
    assert spec.call is not None
    return spec.call({"value": value}, CallContext())


POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "how far right"},
        "y": {"type": "number", "default": 0.0},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["x"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (typing.List[str], {"type": "array", "items": {"type": "string"}}),  # noqa: UP006
        (collections.abc.Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            collections.abc.Mapping[Colour, int],
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "propertyNames": {"type": "string", "enum": ["red", "blue"]},
            },
        ),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Weight, {"type": "integer", "enum": [1, 2]}),
        (Origin, {"type": "string", "enum": ["HERE", "THERE"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (
            typing.Optional[str | int],  # noqa: UP045
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ),
        (Annotated[str, "what to find"], {"type": "string", "description": "what to find"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (decimal.Decimal, {"type": ["number", "string"]}),
        (UserId, {"type": "string"}),
        (
            Options,
            {
                "type": "object",
                "properties": {
                    "since": {"type": "string", "format": "date"},
                    "deep": {"type": "boolean"},
                },
                "required": ["since"],
                "additionalProperties": False,
            },
        ),
        (Point, POINT),
        (list[Point], {"type": "array", "items": POINT}),
    ],
)
def test_each_annotation_has_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    """A type becomes the JSON Schema (2020-12) that says the same."""
    assert parameter_schema(annotation) == schema


@pytest.mark.parametrize(
    ("annotation", "given_value", "expected"),
    [
        (int, 5.0, 5),
        (Colour, "red", Colour.RED),
        (Weight, 2, Weight.HEAVY),
        (Origin, "THERE", Origin.THERE),
        (Literal[Colour.RED], "red", Colour.RED),
        (datetime.date, "2026-11-02", datetime.date(2026, 11, 2)),
        (
            datetime.datetime,
            "2026-11-02T10:00:00Z",
            datetime.datetime(2026, 11, 2, 10, tzinfo=datetime.UTC),
        ),
        (datetime.time, "10:30:00", datetime.time(10, 30)),
        (
            uuid.UUID,
            "12345678123456781234567812345678",
            uuid.UUID(int=0x12345678 * (2**96 + 2**64 + 2**32 + 1)),
        ),
        (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
        (set[int], [1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset({"a"})),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[datetime.date, ...], ["2026-01-01"], (datetime.date(2026, 1, 1),)),
        (dict[Colour, list[Weight]], {"red": [1]}, {Colour.RED: [Weight.LIGHT]}),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1, "tags": ["a"]}], [Point(1, tags=["a"])]),
        (Options, {"since": "2026-01-01"}, {"since": datetime.date(2026, 1, 1)}),
        (Point | None, None, None),
        (datetime.date | str, "tomorrow", "tomorrow"),
        (datetime.date | str, "2026-01-01", datetime.date(2026, 1, 1)),
        (list[int] | list[datetime.date], ["2026-01-01"], [datetime.date(2026, 1, 1)]),
        (int | Point, {"x": 2}, Point(2)),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
    ],
)
def test_arguments_become_what_the_annotation_names(
    annotation: Any, given_value: Any, expected: Any
) -> None:
    """The function gets enum members, dates, dataclasses and sets, not their JSON."""
    found = converted(annotation, given_value)
    assert found == expected
    assert type(found) is type(expected)


def test_a_recursive_dataclass_is_a_definition() -> None:
    """A type that contains itself stands in $defs, where a validator finds it."""

    def tool(tree: Tree, forest: list[Tree]) -> None: ...

    schema = function_tool(tool).schema
    assert schema is not None
    validator = jsonschema.Draft202012Validator(dict(schema))
    good = {"name": "a", "children": [{"name": "b"}]}
    assert validator.is_valid({"tree": good, "forest": [good]})
    assert not validator.is_valid({"tree": {"name": "a", "children": [{"nam": "b"}]}, "forest": []})


def test_a_pydantic_model_is_taken_at_its_word() -> None:
    """Its own schema and validation are used, definitions included."""
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        sku: str
        quantity: int = pydantic.Field(ge=1)

    class Order(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        items: list[Item]

    def place(order: Order, limit: int = pydantic.Field(3)) -> Any:
        return order

    place.__annotations__.update(order=Order, limit=Annotated[int, pydantic.Field(ge=1, le=9)])
    place.__defaults__ = (3,)
    spec = function_tool(place)
    assert spec.schema is not None
    assert spec.schema["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 3,
    }
    validator = jsonschema.Draft202012Validator(dict(spec.schema))
    assert validator.is_valid({"order": {"items": [{"sku": "a", "quantity": 1}]}})
    assert not validator.is_valid({"order": {"items": [{"sku": "a", "quantity": 0}]}})
    assert spec.call is not None
    found = spec.call({"order": {"items": [{"sku": "a", "quantity": 1}]}}, CallContext())
    assert found == Order(items=[Item(sku="a", quantity=1)])


def test_a_value_that_names_nothing_is_the_models_to_correct() -> None:
    """The 31st of June passes as a string; the call is refused before anything happened."""
    with pytest.raises(ToolError) as caught:
        converted(datetime.date, "2026-06-31")
    assert caught.value.code == "model_output.schema_violation"
    assert caught.value.effect is Effect.NOT_SENT
    assert caught.value.details["path"] == "/value"


def test_defaults_and_descriptions() -> None:
    """A default makes a parameter optional and is shown; Annotated wins over the docstring."""

    def search(
        query: Annotated[str, "the words"],
        limit: int = 10,
        colour: Colour = Colour.RED,
        since: datetime.date | None = None,
        place: str = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> list[str]:
        """Search the shop.

        Only what is in stock.

        Args:
            query: never seen
            limit (int): how many at most,
                counted in pages

        Returns:
            names: of products
        """
        return [query]

    spec = function_tool(search)
    assert spec.name == "search"
    assert spec.description == "Search the shop.\n\nOnly what is in stock."
    assert spec.schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "the words"},
            "limit": {
                "type": "integer",
                "description": "how many at most, counted in pages",
                "default": 10,
            },
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "since": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
                "default": None,
            },
            "place": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


NUMPY = """Find it.

Parameters
----------
query : str
    the words
limit, page : int
    numbers

Returns
-------
list
    names
"""
SPHINX = """Find it.

:param str query: the words
:param limit: numbers
:param page: numbers
:returns: names
"""
GOOGLE = "Find it.\n\nArgs:\n    query: the words\n    limit: numbers\n    page: numbers\n"
CHINESE = "查找商品。\n\nArgs:\n    query: 关键词\n"


@pytest.mark.parametrize("text", [NUMPY, SPHINX, GOOGLE])
def test_docstring_forms(text: str) -> None:
    """Google, NumPy and Sphinx docstrings give the same descriptions."""

    def find(query: str, limit: int, page: int) -> None: ...

    find.__doc__ = text
    spec = function_tool(find)
    assert spec.schema is not None
    texts = {name: part.get("description") for name, part in spec.schema["properties"].items()}
    assert texts == {"query": "the words", "limit": "numbers", "page": "numbers"}
    assert spec.description == "Find it."


def test_a_chinese_docstring() -> None:
    """Text in any language is kept as it is."""

    def find(query: str) -> None: ...

    find.__doc__ = CHINESE
    spec = function_tool(find)
    assert spec.description == "查找商品。"
    assert spec.schema is not None
    assert spec.schema["properties"]["query"]["description"] == "关键词"


@given(st.text(max_size=400))
def test_any_docstring_is_read(text: str) -> None:
    """No docstring, however odd, keeps a tool from being made."""

    def find(query: str) -> None: ...

    find.__doc__ = text
    assert function_tool(find).schema is not None


def test_the_context_is_hidden_and_filled_in() -> None:
    """A CallContext parameter is no business of the model."""

    def order(sku: str, context: CallContext, other: "CallContext | None" = None) -> Any:
        return sku, context, other

    spec = function_tool(order)
    assert spec.schema is not None
    assert list(spec.schema["properties"]) == ["sku"]
    assert spec.schema["required"] == ["sku"]
    context = CallContext(attempt=2)
    assert spec.call is not None
    assert spec.call({"sku": "a"}, context) == ("a", context, context)


def test_the_key_parameter_is_hidden_and_filled_in() -> None:
    """`idempotency_key=` naming a parameter hands the key to it, never to the model."""

    def charge(amount: int, request_id: str) -> Any:
        return amount, request_id

    spec = function_tool(charge, idempotency_key="request_id")
    assert spec.schema is not None
    assert list(spec.schema["properties"]) == ["amount"]
    assert spec.call is not None
    assert spec.call({"amount": 1}, CallContext(idempotency_key="k1")) == (1, "k1")


def test_a_key_that_cannot_be_sent_is_refused() -> None:
    """Claiming an honoured key that never leaves would make a double payment look safe."""

    def charge(amount: int) -> None: ...

    with pytest.raises(UsageError, match="never sees the key"):
        function_tool(charge, idempotency_key="Idempotency-Key")


def test_positional_only_and_keywords() -> None:
    """Positional-only parameters and **kwargs are called as Python demands."""

    def tool(a: int = 1, b: int = 2, /, *, c: Colour = Colour.RED, **others: datetime.date) -> Any:
        return a, b, c, others

    spec = function_tool(tool)
    assert spec.schema is not None
    assert list(spec.schema["properties"]) == ["a", "b", "c"]
    assert spec.schema["additionalProperties"] == {"type": "string", "format": "date"}
    assert spec.call is not None
    assert spec.call({"b": 5, "c": "blue", "on": "2026-01-01"}, CallContext()) == (
        1,
        5,
        Colour.BLUE,
        {"on": datetime.date(2026, 1, 1)},
    )


def test_arguments_are_not_changed() -> None:
    """The caller's arguments stay as they are: the next attempt needs them."""

    def tool(on: datetime.date, context: CallContext) -> Any:
        return on

    spec = function_tool(tool)
    assert spec.call is not None
    arguments = {"on": "2026-01-01"}
    spec.call(arguments, CallContext())
    assert arguments == {"on": "2026-01-01"}


def star(*names: str) -> None: ...


def in_bytes(data: bytes) -> None: ...


def by_number(data: dict[int, str]) -> None: ...


def unresolved(data: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def a_callback(then: collections.abc.Callable[[], None]) -> None: ...


class Shop:
    def find(self, query: str) -> str:
        return query

    def __call__(self, query: str) -> str:
        """Ask the shop."""
        return f"called {query}"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (star, "take a list"),
        (in_bytes, "has no form in JSON"),
        (by_number, "annotate it dict"),
        (unresolved, "give the tool a schema="),
        (a_callback, "has no form in JSON"),
        (Shop.find, "register the bound method"),
        (lambda query: query, "give name="),
        (3, "give a function"),
    ],
)
def test_what_no_model_could_call_is_refused(function: Any, says: str) -> None:
    """The error comes when the tool is made, and says what to do instead."""
    with pytest.raises(UsageError, match=says):
        function_tool(function)


def test_a_schema_of_ones_own() -> None:
    """With schema= the annotations are not read, and arguments pass as JSON gave them."""

    def tool(data: "Missing", context: "CallContext") -> Any:  # type: ignore[name-defined]  # noqa: F821
        return data, context

    schema = {"type": "object", "properties": {"data": {"type": "string"}}}
    spec = function_tool(tool, schema=schema)
    assert spec.schema == schema
    context = CallContext()
    assert spec.call is not None
    assert spec.call({"data": "2026-01-01"}, context) == ("2026-01-01", context)


def test_other_callables() -> None:
    """Partials, bound methods, callable objects and wrapped functions are tools too."""

    def add(a: int, b: int = 0) -> int:
        """Add two."""
        return a + b

    @functools.wraps(add)
    def logged(*args: Any, **kwargs: Any) -> int:
        return add(*args, **kwargs)

    half = function_tool(functools.partial(add, b=5))
    assert (half.name, half.description) == ("add", "Add two.")
    assert half.call is not None
    assert half.call({"a": 1}, CallContext()) == 6

    wrapped = function_tool(logged)
    assert wrapped.schema == function_tool(add).schema
    assert wrapped.call is not None
    assert wrapped.call({"a": 1, "b": 2}, CallContext()) == 3

    method = function_tool(Shop().find)
    assert method.name == "find"
    assert method.call is not None
    assert method.call({"query": "x"}, CallContext()) == "x"

    instance = function_tool(Shop(), name="shop")
    assert instance.description == "Ask the shop."
    assert instance.call is not None
    assert instance.call({"query": "x"}, CallContext()) == "called x"


@given(
    st.recursive(
        st.sampled_from([str, int, float, bool, None, Colour, datetime.date, uuid.UUID, Point]),
        lambda inner: (
            inner.map(lambda one: list[one])  # type: ignore[valid-type]
            | inner.map(lambda one: dict[str, one])  # type: ignore[valid-type]
            | st.tuples(inner, inner).map(lambda pair: typing.Union[pair[0], pair[1]])  # noqa: UP007
            | inner.map(lambda one: tuple[one, ...])  # type: ignore[valid-type]
        ),
        max_leaves=6,
    )
)
def test_every_composed_type_has_a_valid_schema(annotation: Any) -> None:
    """However types are composed, the schema is valid JSON Schema and of JSON only."""
    import json

    json.dumps(parameter_schema(annotation))
