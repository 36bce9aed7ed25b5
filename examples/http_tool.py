"""HTTP endpoints as tools, against a real upstream that fails as told.

Shows a 502 page cured by a repeat, a 401 cured by one refresh, a 400 whose hint leads to corrected
arguments, and a 200 that holds a refusal.
"""

import failwise
from failwise.faults import Fault, FaultServer, Tokens

LIMITED = Fault.status(
    400,
    json={
        "type": "about:blank",
        "title": "Invalid parameter",
        "errors": [{"field": "page_size", "message": "must be less than or equal to 100"}],
    },
)


def main() -> None:
    tokens = Tokens("first-token-4d2c")
    with FaultServer() as shop, failwise.Runtime(":memory:") as rt:
        shop.route("GET", "/search", [Fault.status(502), Fault.json({"items": ["shoes"]})])
        shop.route("GET", "/me", Fault.json({"name": "Ann"}), tokens=tokens)
        shop.route("GET", "/orders", [LIMITED, Fault.json({"orders": []})])
        shop.route("GET", "/stock/{sku}", Fault.json({"ok": False, "error": "sku_not_found"}))

        rt.add(failwise.HttpTool("search", "GET", shop.url("/search")))
        rt.add(failwise.HttpTool("me", "GET", shop.url("/me"), credential="shop"))
        rt.add(
            failwise.HttpTool(
                "orders",
                "GET",
                shop.url("/orders"),
                schema={
                    "type": "object",
                    "properties": {"page_size": {"type": "integer", "default": 20}},
                },
                repair="auto",  # 100 for 500 is a guess: elsewhere it would be asked for first
            )
        )
        rt.add(failwise.HttpTool("stock", "GET", shop.url("/stock/{sku}")))

        def refresh() -> str:
            tokens.allow("second-token-8b1f")
            return "second-token-8b1f"

        rt.credential("shop", "first-token-4d2c", refresh=refresh)
        tokens.expire("first-token-4d2c")

        calls = [
            ("search", '{"query": "shoes"}'),
            ("me", "{}"),
            ("orders", '{"page_size": 500}'),
            ("stock", '{"sku": "A-1"}'),
        ]
        for tool, raw in calls:
            result = rt.call_sync(tool, raw)
            print(f"{tool}: {result.sent} request(s), success {result.success}")
            for attempt in result.attempts:
                if attempt.failure and attempt.decision:
                    print(f"  {attempt.failure.code}: {attempt.decision.reason}")
            for repair in result.repairs:
                print(f"  corrected {repair.path}: {repair.before} -> {repair.after}")
            print("  " + result.for_model().replace("\n", "\n  "))


if __name__ == "__main__":
    main()
