"""A journal as a shop's agent leaves it behind: real calls to a misbehaving upstream."""

from contextlib import closing
from pathlib import Path
from typing import Any

from failwise import HttpTool, Runtime
from failwise.faults import Fault, FaultServer
from failwise.journal.journal import Journal

HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    " \u202eevil\u202c \u2066x\u2069 {{ 7 * 7 }} " + "w" * 3_000
)
"""Markup, script, marks that turn the direction, a template, one endless word."""
QUICK: dict[str, Any] = {
    "preset": "default",
    "network": {"base": 0.01},
    "server": {"base": 0.01},
    "parsing": {"base": 0.01},
}


def _object(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, "required": list(names)}


def seed(path: Path) -> None:
    """Play the calls. Among them: an expired certificate, an order whose answer is lost but which is
    found, a payment of which nobody knows, a run that is stopped, retries that help and that do not, a
    fallback, a repair, and an answer of somebody who means harm."""
    with (
        FaultServer() as server,
        closing(Journal(path, raw=True)) as journal,
        Runtime(journal, policy=QUICK) as runtime,
    ):
        _tools(server, runtime)
        for number in range(12):
            runtime.call_sync("search", {"query": f"shoes {number}"}, call_id=f"search-{number}")
        with runtime.run(id="rates") as run:
            run.call_sync("exchange_rate", {"currency": "JPY"}, call_id="rate-1")
        with runtime.run(id="job-order") as run:
            run.call_sync("create_order", {"reference": "R-1001"}, call_id="order-1")
        with runtime.run(id="job-pay") as run:
            run.call_sync("pay", {"order": "R-1001", "amount": 89}, call_id="pay-1")
        with runtime.run(id="job-stopped") as run:
            run.call_sync("read_customer", {"customer": 12}, call_id="c-1")
            run.call_sync("send_voucher", {"customer": 12}, call_id="c-2")
            run.call_sync("archive_customer", {"customer": 12}, call_id="c-3")
        for number in range(3):
            runtime.call_sync("check_stock", {"sku": f"A-{number}"}, call_id=f"stock-{number}")
        runtime.call_sync("find_store", {"city": "Kyoto"}, call_id="store-1")
        with runtime.run(id="job-fallback") as run:
            run.call_sync("search_live", "{'query': 'boots'}", call_id="live-1")
        runtime.call_sync("read_review", {"id": 7}, call_id="hostile-1")


def _tools(server: FaultServer, runtime: Runtime) -> None:
    def get(name: str, *replies: Any, at: str = "", **options: Any) -> None:
        server.route("GET", f"/{name}", list(replies))
        url = at or server.url(f"/{name}")
        runtime.add(HttpTool(name, "GET", url, **{"upstream": f"{name}.example"} | options))

    def post(name: str, *replies: Any, **options: Any) -> None:
        server.route("POST", f"/{name}", list(replies))
        runtime.add(
            HttpTool(
                name, "POST", server.url(f"/{name}"), upstream=f"{name}.example",
                read_timeout=0.3, **options,
            )
        )  # fmt: skip

    get("search", Fault.json({"items": ["shoes"]}))
    expired = server.tls("expired", "/exchange_rate")
    get("exchange_rate", Fault.json({}), at=expired, ca_file=server.ca_file)

    def placed(arguments: dict[str, Any]) -> Any:
        found = [entry.data for entry in server.ledger.of("order")]
        return found[0] if found else None

    post("create_order", Fault.effect("order", Fault.silent()), verify=placed)
    post("pay", Fault.effect("payment", Fault.status(504, json={"message": "no answer"})))
    get("read_customer", Fault.json({"error": "forbidden", "message": "not this one"}, 403))
    post("send_voucher", Fault.json({}))
    post("archive_customer", Fault.json({}))
    get("check_stock", Fault.status(502), Fault.status(502), Fault.json({"stock": 4}))
    get("find_store", Fault.json({}), at=server.refused_url)
    get("search_live", Fault.status(503, json={"error": "busy"}), fallback="search_cache",
        schema=_object("query"))  # fmt: skip

    @runtime.tool(read_only=True)
    def search_cache(query: str) -> list[str]:
        """What was found yesterday."""
        return [query]

    get("read_review", Fault.status(400, json={"error": {"message": HOSTILE}}))
