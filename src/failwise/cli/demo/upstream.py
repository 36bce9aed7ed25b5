"""Scenes of an upstream in trouble: gateways, told waits, quotas, broken bodies, silence, outage."""

from failwise.cli.demo.scene import Scene, Step, Wanted
from failwise.cli.demo.world import READ_TIMEOUT, World
from failwise.faults import Fault

_QUERY = {"query": {"type": "string"}}
_ITEM = {"item": {"type": "string"}}
_SHOES = {"items": ["Trail 2", "Road 5"]}


def _bad_gateway(world: World) -> None:
    leaked = world.secret("sk_live_")
    page = (
        "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>"
        f"<h1>502 Bad Gateway</h1><p>Authorization: Bearer {leaked}</p></body></html>"
    )
    replies = [Fault.status(502, html=page), Fault.json(_SHOES)]
    world.get("search_products", "/bad_gateway/products", replies, _QUERY)


def _told_waits(world: World) -> None:
    busy = {"error": {"message": "Too many requests"}}
    replies = [
        Fault.status(503, retry_after=1),
        Fault.status(429, json=busy, retry_after=1),
        Fault.json({"item": "Trail 2", "stock": 12}),
    ]
    world.get("check_stock", "/told_waits/stock", replies, _ITEM)


def _quota(world: World) -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    body = {
        "error": {
            "message": f"{message} Key: {world.secret('sk-proj-')}",
            "type": "insufficient_quota",
            "param": None,
            "code": "insufficient_quota",
        }
    }
    world.get("translate", "/quota/translate", Fault.json(body, 429), _QUERY, profile="openai")


def _bodies(world: World) -> None:
    page = (
        "<!doctype html><html><head><title>Sign in</title></head><body>"
        f'<a href="/login?session_id={world.secret("s")}">Sign in</a></body></html>'
    )
    value = {"item": "Trail 2", "text": "Light, dry and quick. " * 10}
    world.get("read_manual", "/bodies/manual", Fault.html(page), _ITEM)
    world.get("read_reviews", "/bodies/reviews", [Fault.cut_off(value), Fault.json(value)], _ITEM)
    world.get("read_sizes", "/bodies/sizes", [Fault.empty(), Fault.json({"sizes": [41]})], _ITEM)


def _slow_read(world: World) -> None:
    replies = [Fault.silent(), Fault.json({"item": "Trail 2", "price": 89.0})]
    world.get("read_price", "/slow_read/price", replies, _ITEM, read_timeout=READ_TIMEOUT)


def _refused(world: World) -> None:
    url = f"{world.server.refused_url}/stores?api_key={world.secret('ak_')}"
    world.get(
        "find_store",
        "/refused/stores",
        Fault.json({}),
        {"city": {"type": "string"}},
        at=url,
        policy={"network": {"base": 0.3}},
    )


def _fallback(world: World) -> None:
    down = {"status": "down", "password": world.secret("pw-")}
    world.get(
        "search_live",
        "/fallback/search",
        Fault.status(503, json=down),
        _QUERY,
        fallback="search_cache",
        policy={"server": {"retries_read": 1, "base": 0.5}},
    )

    def search_cache(query: str) -> list[str]:
        """What was found yesterday."""
        return ["Trail 1", "Road 4"]

    world.runtime.add(search_cache, read_only=True, thread=False)


def _outage(world: World) -> None:
    down = {"error": {"message": "service unavailable"}}
    world.get("recommend", "/outage/recommendations", Fault.status(503, json=down), _QUERY)


BAD_GATEWAY = Scene(
    "bad_gateway",
    _bad_gateway,
    (
        Step(
            "search_products",
            '{"query": "running shoes"}',
            Wanted(met=("network.bad_gateway",), requests=2),
        ),
    ),
    requests=2,
)

TOLD_WAITS = Scene(
    "told_waits",
    _told_waits,
    (
        Step(
            "check_stock",
            '{"item": "Trail 2"}',
            Wanted(met=("server.unavailable", "rate_limit.requests"), requests=3),
        ),
    ),
    requests=3,
    least_seconds=2.0,
)

QUOTA = Scene(
    "quota",
    _quota,
    (
        Step(
            "translate",
            '{"query": "scarpe da corsa"}',
            Wanted(False, "business.quota_exhausted"),
        ),
    ),
    requests=1,
    seconds=5.0,
)

BODIES = Scene(
    "bodies",
    _bodies,
    (
        Step(
            "read_manual",
            '{"item": "Trail 2"}',
            Wanted(
                False,
                "parsing.html_instead_of_json",
                met=("parsing.html_instead_of_json",) * 2,
                requests=2,
            ),
        ),
        Step(
            "read_reviews",
            '{"item": "Trail 2"}',
            Wanted(met=("parsing.truncated",), requests=2),
        ),
        Step("read_sizes", '{"item": "Trail 2"}', Wanted(met=("parsing.empty",), requests=2)),
    ),
    requests=6,
)

SLOW_READ = Scene(
    "slow_read",
    _slow_read,
    (
        Step(
            "read_price",
            '{"item": "Trail 2"}',
            Wanted(met=("network.read_timeout",), requests=2),
        ),
    ),
    requests=2,
    least_seconds=READ_TIMEOUT,
)

REFUSED = Scene(
    "refused",
    _refused,
    (
        Step(
            "find_store",
            '{"city": "Kyoto"}',
            Wanted(
                False,
                "network.connect_refused",
                met=("network.connect_refused",) * 4,
                requests=4,
            ),
        ),
    ),
    unreached=4,
)

FALLBACK = Scene(
    "fallback",
    _fallback,
    (
        Step(
            "search_live",
            '{"query": "running shoes"}',
            Wanted(met=("server.unavailable",) * 2, requests=2, degraded_to="search_cache"),
        ),
    ),
    requests=2,
    told=True,
)

OUTAGE = Scene(
    "outage",
    _outage,
    (Step("recommend", '{"query": "socks"}', Wanted(False, requests=None)),),
    copies=50,
    outage=True,
    seconds=20.0,
)
