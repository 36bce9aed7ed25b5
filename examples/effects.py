"""An order is placed and its answer is lost: it is verified, and not placed again.

The ledger of the server counts what really happened.
"""

from typing import Any

import failwise
from failwise.faults import Fault, FaultServer


def main() -> None:
    with FaultServer() as shop, failwise.Runtime(":memory:") as rt:
        # Both orders are really placed; the client never gets an answer.
        shop.route("POST", "/orders", Fault.effect("order", Fault.silent()))

        def was_placed(arguments: dict[str, Any]) -> Any:
            """Did it happen? Here the ledger answers; with a real shop, its list of orders does."""
            placed = [entry.data for entry in shop.ledger.of("order")]
            return next((order for order in placed if order["sku"] == arguments["sku"]), None)

        schema = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
        url = shop.url("/orders")
        rt.add(failwise.HttpTool("order_blindly", "POST", url, schema=schema, read_timeout=0.5))
        rt.add(
            failwise.HttpTool(
                "order", "POST", url, schema=schema, read_timeout=0.5, verify=was_placed
            )
        )

        with rt.run(id="job-42") as run:
            verified = run.call_sync("order", '{"sku": "A-1"}', call_id="c1")
            print(verified.for_model(), "\n")
            assert verified.success
            assert verified.verified

            # Nobody can say whether this one happened, so it stays open ...
            lost = run.call_sync("order_blindly", '{"sku": "B-2"}', call_id="c2")
            print(lost.for_model(), "\n")
            assert lost.stop_reason is failwise.StopReason.UNSAFE_EFFECT

            # ... and the same order under a new call id is refused instead of placed twice.
            again = run.call_sync("order_blindly", '{"sku": "B-2"}', call_id="c3")
            print(again.for_model(), "\n")
            assert again.failure is not None
            assert again.failure.code == "runtime.effect_open"

        print(f"orders asked for: 2, orders placed: {shop.ledger.count('order')}")
        assert shop.ledger.count("order") == 2


if __name__ == "__main__":
    main()
