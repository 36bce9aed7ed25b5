"""Scenes of trust: certificates, a credential that is renewed, a permission that is missing."""

from failwise.cli.demo.scene import Scene, Step, Wanted
from failwise.cli.demo.world import World
from failwise.faults import Fault, Tokens

_CURRENCY = {"currency": {"type": "string"}}
_PARCEL = {"parcel": {"type": "string"}}
_CUSTOMER = {"customer": {"type": "integer"}}


def _expired(world: World) -> None:
    path = "/expired/rates"
    world.get(
        "exchange_rate",
        path,
        Fault.json({"rate": 7.1}),
        _CURRENCY,
        at=world.server.tls("expired", path),
        ca_file=world.server.ca_file,
    )


def _wrong_host(world: World) -> None:
    path = "/wrong_host/parcels"
    world.get(
        "track_parcel",
        path,
        Fault.json({"at": "Osaka"}),
        _PARCEL,
        at=world.server.tls("wrong_host", path),
        ca_file=world.server.ca_file,
    )


def _refresh(world: World) -> None:
    old, new = world.secret("tok-old-"), world.secret("tok-new-")
    tokens = Tokens(new)
    tokens.expire(old)
    world.credential("courier", lambda: old, lambda: new)
    world.post(
        "book_courier",
        "/refresh/couriers",
        Fault.effect("refresh", Fault.json({"booking": "C-77"}, 201)),
        _PARCEL,
        tokens=tokens,
        credential="courier",
    )


def _forbidden(world: World) -> None:
    token = world.secret("tok-crm-")
    refusal = {
        "error": "forbidden",
        "message": f"Token {token} is not allowed to read customers",
    }
    world.credential("crm", lambda: token, lambda: token)
    world.get(
        "read_customer",
        "/forbidden/customers",
        Fault.json(refusal, 403),
        _CUSTOMER,
        credential="crm",
    )
    for name in ("send_voucher", "archive_customer"):
        done = Fault.effect("forbidden", Fault.json({"done": True}))
        world.post(name, f"/forbidden/{name}", done, _CUSTOMER, credential="crm")


EXPIRED = Scene(
    "expired",
    _expired,
    (
        Step(
            "exchange_rate",
            '{"currency": "CNY"}',
            Wanted(False, "security.certificate_expired"),
        ),
    ),
    connections=("expired", 1),
    unreached=1,
    seconds=5.0,
    told=True,
)

WRONG_HOST = Scene(
    "wrong_host",
    _wrong_host,
    (
        Step(
            "track_parcel",
            '{"parcel": "P-1"}',
            Wanted(False, "security.hostname_mismatch"),
        ),
    ),
    connections=("wrong_host", 1),
    unreached=1,
    seconds=5.0,
)

REFRESH = Scene(
    "refresh",
    _refresh,
    (
        Step(
            "book_courier",
            '{"parcel": "P-1"}',
            Wanted(met=("auth.credential_expired",), requests=2),
            effect=True,
        ),
    ),
    requests=2,
    effects=1,
    seconds=5.0,
)

FORBIDDEN = Scene(
    "forbidden",
    _forbidden,
    (
        Step("read_customer", '{"customer": 12}', Wanted(False, "auth.forbidden")),
        Step(
            "send_voucher",
            '{"customer": 12}',
            Wanted(False, "runtime.chain_aborted", requests=0),
            effect=True,
        ),
        Step(
            "archive_customer",
            '{"customer": 12}',
            Wanted(False, "runtime.chain_aborted", requests=0),
            effect=True,
        ),
    ),
    requests=1,
    seconds=5.0,
    told=True,
)
