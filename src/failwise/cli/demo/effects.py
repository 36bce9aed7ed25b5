"""Scenes of side effects: an order whose answer is lost, one that is asked for again, a clear no."""

from typing import Any

from failwise.cli.demo.scene import Scene, Step, Wanted
from failwise.cli.demo.world import READ_TIMEOUT, World
from failwise.faults import Fault, Reply
from failwise.faults.requests import Request

_ORDER = {"reference": {"type": "string"}, "item": {"type": "string"}}
_REFERENCE = {"reference": {"type": "string"}}
_PAYMENT = {"order": {"type": "string"}, "amount": {"type": "number"}}


def _orders(world: World, scene: str, create: str, find: str, unreachable: int = 0) -> None:
    """An order endpoint that does the work and never answers, and one that says what was ordered."""

    def ledger(request: Request, number: int) -> Reply:
        if number <= unreachable:
            return Fault.status(500, json={"error": "the order book is being rebuilt"})
        wanted = request.query.get("reference")
        orders = [entry.data for entry in world.server.ledger.of(scene)]
        found = [order for order in orders if order["reference"] == wanted]
        return Fault.json({"orders": found})

    async def verify(arguments: dict[str, Any]) -> Any:
        """Is there an order of this reference? None where the order book does not say."""
        found = await world.runtime.call(find, {"reference": arguments["reference"]})
        if not found.success:
            return None
        orders = (found.value or {}).get("orders")
        return orders[0] if orders else False

    world.get(
        find,
        f"/{scene}/ledger",
        ledger,
        _REFERENCE,
        upstream=f"{scene} ledger",
        policy={"server": {"retries_read": 0}},
    )
    world.post(
        create,
        f"/{scene}/orders",
        Fault.effect(scene, Fault.silent()),
        _ORDER,
        read_timeout=READ_TIMEOUT,
        verify=verify,
    )


def _order_lost(world: World) -> None:
    _orders(world, "order_lost", "create_order", "find_order")


def _order_repeated(world: World) -> None:
    _orders(world, "order_repeated", "create_gift_order", "find_gift_order", unreachable=1)


def _balance(world: World) -> None:
    refusal = {
        "success": False,
        "code": 20013,
        "message": "余额不足，请充值后再试",
        "trace": {"access_token": world.secret("at-")},
    }
    world.post("pay", "/balance/payments", Fault.json(refusal), _PAYMENT)


ORDER_LOST = Scene(
    "order_lost",
    _order_lost,
    (
        Step(
            "create_order",
            '{"reference": "R-1001", "item": "Trail 2"}',
            Wanted(met=("network.read_timeout",), verified=True),
            effect=True,
        ),
    ),
    requests=2,
    effects=1,
    least_seconds=READ_TIMEOUT,
    told=True,
)

_AGAIN = '{"reference": "R-1002", "item": "Road 5"}'

ORDER_REPEATED = Scene(
    "order_repeated",
    _order_repeated,
    (
        Step(
            "create_gift_order",
            _AGAIN,
            Wanted(False, "network.read_timeout"),
            effect=True,
        ),
        Step("create_gift_order", _AGAIN, Wanted(verified=True, requests=0), effect=True),
    ),
    requests=3,
    effects=1,
    least_seconds=READ_TIMEOUT,
    told=True,
)

BALANCE = Scene(
    "balance",
    _balance,
    (
        Step(
            "pay",
            '{"order": "R-1001", "amount": 89.0}',
            Wanted(False, "business.insufficient_balance"),
            effect=True,
        ),
    ),
    requests=1,
    seconds=5.0,
    told=True,
)
