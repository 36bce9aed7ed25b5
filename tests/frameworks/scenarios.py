"""One table of scenarios for all frameworks: what the model asks for, how the upstream fails, what must
hold. What the model must read is not in it: that is what a runtime of its own says to the same calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from failwise.faults import Fault, FaultServer
from failwise.vocabulary.records import record
from tests.frameworks.shop import SECRET, Shop

Call = tuple[str, Any]
"""A tool and the arguments that the model writes for it: an object, or text as it is."""


@record
class Scenario:
    """`calls` are asked for one a turn. `told`: whether each of them ends as a failure. `holds` is given
    the shop and must be true at the end. `needs`: ``text`` where the arguments are no object, which not
    every provider's API lets a model write; ``unknown`` where there is no such tool."""

    name: str
    routes: Callable[[FaultServer], None]
    calls: Sequence[Call]
    told: Sequence[bool]
    holds: Callable[[Shop], bool]
    needs: str = ""


FOUND = Fault.json({"items": ["shoes 1", "shoes 2"]})
SHOES = {"query": "shoes", "limit": 2}
ORDER = {"sku": "A-1", "quantity": 2}


def _search(*replies: Any) -> Callable[[FaultServer], None]:
    return lambda server: server.route("GET", "/search", list(replies))


def _profile(*replies: Any) -> Callable[[FaultServer], None]:
    return lambda server: server.route("GET", "/profile", list(replies))


def _both(server: FaultServer) -> None:
    server.route("GET", "/profile", Fault.status(403, json={"message": "no access to customers"}))
    server.route("GET", "/search", FOUND)


def _orders(*replies: Any) -> Callable[[FaultServer], None]:
    return lambda server: server.route("POST", "/orders", list(replies))


def _requests(path: str, number: int) -> Callable[[Shop], bool]:
    return lambda shop: shop.server.count(path) == number


def _waited(shop: Shop) -> bool:
    first, second = (request.time for request in shop.server.requests)
    return second - first >= 0.3


def _one_order(shop: Shop) -> bool:
    return shop.server.ledger.count("order") == 1


def _as_number(shop: Shop) -> bool:
    return [request.query["limit"] for request in shop.server.requests] == ["2"]


_LOST = Fault.effect("order", Fault.status(504, json={"message": "no answer from warehouse-7"}))
_REFUSED = Fault.json(
    {"ok": False, "error": {"code": "insufficient_balance", "message": "12.50 short"}}
)

SCENARIOS = (
    Scenario("good", _search(FOUND), [("search", SHOES)], [False], _requests("/search", 1)),
    Scenario(
        "transport_recovered",
        _search(Fault.status(502), Fault.reset(), FOUND),
        [("search", SHOES)],
        [False],
        _requests("/search", 3),
    ),
    Scenario(
        "permanent_once",
        _profile(Fault.status(404, json={"message": "no such customer"})),
        [("profile", {"user": "ann"})],
        [True],
        _requests("/profile", 1),
    ),
    Scenario(
        "auth_stops_the_chain",
        _both,
        [("profile", {"user": "ann"}), ("search", SHOES)],
        [True, True],
        lambda shop: shop.server.count("/profile") == 1 and shop.server.count("/search") == 0,
    ),
    Scenario(
        "told_wait",
        _search(Fault.status(429, retry_after=0.3), FOUND),
        [("search", SHOES)],
        [False],
        _waited,
    ),
    Scenario(
        "business_in_a_200",
        _orders(_REFUSED),
        [("create_order", ORDER)],
        [True],
        _requests("/orders", 1),
    ),
    Scenario(
        "tls_expired",
        _search(FOUND),
        [("secure", {"query": "shoes"})],
        [True],
        lambda shop: shop.server.connections("expired") == 1,
    ),
    Scenario(
        "arguments_repaired",
        _search(FOUND),
        [("search", {"query": "shoes", "limit": "2"})],
        [False],
        _as_number,
    ),
    Scenario(
        "arguments_not_json",
        _search(FOUND),
        [("search", "{'query': 'shoes', 'limit': '2'}")],
        [False],
        _as_number,
        "text",
    ),
    Scenario(
        "arguments_wrong",
        _search(FOUND),
        [("search", {"query": "shoes", "limit": "many"})],
        [True],
        _requests("/search", 0),
    ),
    Scenario(
        "no_such_tool",
        _search(FOUND),
        [("serch", SHOES)],
        [True],
        _requests("/search", 0),
        "unknown",
    ),
    Scenario(
        "write_with_lost_answer",
        _orders(_LOST),
        [("create_order", ORDER), ("create_order", ORDER)],
        [True, True],
        _one_order,
    ),
    Scenario(
        "write_not_sent_again",
        _orders(_LOST),
        [("create_order", ORDER)],
        [True],
        lambda shop: shop.ran == {"create_order": 1},
    ),
    Scenario(
        "secret_in_an_error",
        _search(FOUND),
        [("leak", {"query": "shoes"})],
        [True],
        lambda shop: True,
    ),
    Scenario(
        "secret_in_an_answer",
        _profile(Fault.status(400, json={"message": f"bad header Authorization: Bearer {SECRET}"})),
        [("profile", {"user": "ann"})],
        [True],
        _requests("/profile", 1),
    ),
    Scenario(
        "slip_in_the_tool",
        _search(FOUND),
        [("buggy", {"query": "shoes"})],
        [True],
        lambda shop: shop.ran == {"buggy": 1},
    ),
)


def names(*, needs: Sequence[str] = ()) -> list[Any]:
    """The scenarios as parameters: those that need nothing, and those that need one of these."""
    import pytest

    return [
        pytest.param(scenario, id=scenario.name)
        for scenario in SCENARIOS
        if not scenario.needs or scenario.needs in needs
    ]


POLICY: Mapping[str, Any] = {
    "network": {"base": 0.02, "connection_reset": {"base": 0.02}},
    "server": {"base": 0.02},
    "parsing": {"base": 0.02},
}
"""As always, but quick."""
