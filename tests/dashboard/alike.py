"""The same calls in two journals: every page says the same of both."""

from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from failwise.dashboard import app
from failwise.dashboard.view import PATHS
from failwise.journal.read import File
from failwise.journal.reader import open_reader
from failwise.journal.transfer import copy

_OWN = ("id", "next", "owner")
"""What an engine numbers for itself."""
_FILTERS = (
    {}, {"tool": "pay"}, {"upstream": "check_stock.example"}, {"category": "server"},
    {"code": "network.connect_refused"}, {"period": "7d"}, {"period": "30d"}, {"period": "all"},
    {"text": "this one"}, {"success": "no"}, {"run": "job-stopped"}, {"effect": "unknown"},
)  # fmt: skip


def check(played: Path, place: str, claims: str | None = None) -> None:
    """Copy the journal that was played to another place, and compare all pages and twins."""
    with open_reader(played) as reader:
        newest = reader.calls(limit=1)[0]
        failed = next(reader.failures(limit=1))
    now = newest["started"] + 60.0
    source = File(played)
    copied = copy(source, place, claims=claims, raw=True, now=now + 3_600)
    source.close()
    assert copied.calls == 24 + 1  # with its fallback
    pages = [(path, one) for path in PATHS.values() for one in _FILTERS]
    pages += [
        ("/call", {"id": call, "run": run})
        for call, run in (("store-1", ""), ("order-1", "job-order"), ("live-1", "job-fallback"))
    ]
    pages += [("/run", {"id": "job-stopped"}), ("/cluster", {"id": failed["fingerprint"]})]
    options: dict[str, Any] = {"clock": lambda: now}
    with (
        TestClient(app(played, **options), base_url="http://localhost") as one,
        TestClient(app(place, claims=claims, **options), base_url="http://localhost") as other,
    ):
        for path, parameters in pages:
            page = other.get(path, params=parameters)
            assert page.status_code == 200, (path, parameters, page.text)
            twin = "/api/overview" if path == "/" else f"/api{path}"
            wanted, found = (
                _bare(client.get(twin, params=parameters).json()) for client in (one, other)
            )
            assert found == wanted, (path, parameters)


def _bare(data: Any) -> Any:
    """Without what differs; of numbers that were added up, the first digits."""
    if isinstance(data, dict):
        return {
            name: _bare(value)
            for name, value in data.items()
            if name not in _OWN and not (name == "call" and isinstance(value, int))
        }
    if isinstance(data, list):
        return [_bare(one) for one in data]
    return round(data, 6) if isinstance(data, float) else data
