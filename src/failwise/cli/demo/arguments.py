"""Scenes of wrong arguments: broken JSON, a tool that is not there, values that nearly fit."""

from failwise.cli.demo.scene import Scene, Step, Wanted
from failwise.cli.demo.world import World
from failwise.faults import Fault, Reply
from failwise.faults.requests import Request


def _hint(world: World) -> None:
    allowed = ("price", "rating")

    def products(request: Request, number: int) -> Reply:
        sort = request.query.get("sort")
        if sort not in allowed:
            message = f"sort must be one of [{', '.join(allowed)}], got '{sort}'"
            return Fault.json({"error": {"code": "bad_parameter", "message": message}}, 400)
        return Fault.json({"items": ["Trail 2", "Road 5"], "sort": sort})

    world.get("list_products", "/hint/products", products, {"sort": {"type": "string"}})


def _broken_json(world: World) -> None:
    forecast = Fault.json({"city": "Kyoto", "forecast": "clear"})
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    world.get("get_weather", "/broken_json/weather", forecast, properties)


def _unknown_tool(world: World) -> None:
    found = Fault.json({"hotels": ["Kamo"]})
    world.get("find_hotels", "/unknown_tool/hotels", found, {"city": {"type": "string"}})


_ROOMS = ["single", "double"]


def _near_values(world: World) -> None:
    def book(request: Request, number: int) -> Reply:
        asked = request.json or {}
        if asked.get("room") not in _ROOMS or len(str(asked.get("arrival"))) != 10:
            return Fault.json({"error": {"message": "invalid booking"}}, 400)
        return Fault.effect("near_values", Fault.json({"booking": "H-9"}, 201))

    properties = {
        "room": {"type": "string", "enum": _ROOMS},
        "arrival": {"type": "string", "format": "date"},
        "nights": {"type": "integer"},
    }
    world.post("book_hotel", "/near_values/bookings", book, properties)


HINT = Scene(
    "hint",
    _hint,
    (
        Step(
            "list_products",
            '{"sort": "PRICE"}',
            Wanted(met=("invalid_request.parameter",), requests=2, repaired=True),
        ),
    ),
    requests=2,
    seconds=5.0,
    told=True,
)

BROKEN_JSON = Scene(
    "broken_json",
    _broken_json,
    (Step("get_weather", "```json\n{'city': 'Kyoto', 'days': 3,}\n```", Wanted(repaired=True)),),
    requests=1,
    seconds=5.0,
)

UNKNOWN_TOOL = Scene(
    "unknown_tool",
    _unknown_tool,
    (
        Step(
            "find_hotel",
            '{"city": "Kyoto"}',
            Wanted(False, "model_output.unknown_tool", requests=0),
        ),
        Step("find_hotels", '{"city": "Kyoto"}'),
    ),
    requests=1,
    seconds=5.0,
    told=True,
)

NEAR_VALUES = Scene(
    "near_values",
    _near_values,
    (
        Step(
            "book_hotel",
            '{"room": "DOUBLE", "arrival": "2026-12-5", "nights": "2"}',
            Wanted(repaired=True),
            effect=True,
        ),
    ),
    requests=1,
    effects=1,
    seconds=5.0,
)
