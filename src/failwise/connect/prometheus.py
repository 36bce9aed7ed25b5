"""A runtime's calls as Prometheus metrics: as text, on a ``/metrics`` of our own, or in a registry.

    from failwise.connect.prometheus import Metrics

    metrics = Metrics(runtime)
    metrics.serve(9464)          # http://127.0.0.1:9464/metrics
    metrics.text()               # or put it behind a route of yours
    metrics.register(REGISTRY)   # or beside what prometheus_client already exports

Labels are bounded: tools beyond `max_tools` count as ``_other``; ids, messages and arguments are never labels.
Source: Prometheus, "Metric and label naming"; OpenMetrics text format.
"""

import hmac
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failwise._version import __version__
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from failwise.runtime.runtime import Runtime

__all__ = ["Metrics"]

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the duration buckets, in seconds."""
_OTHER = "_other"
_CODES = 200
"""Codes counted one by one for each tool: a provider's own codes are its choice, not ours."""
_CIRCUIT = {"closed": 0, "half_open": 1, "open": 2}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]


class Family(NamedTuple):
    """One metric with its samples: (suffix, labels, value)."""

    name: str
    kind: Kind
    meaning: str
    samples: list[tuple[str, dict[str, str], float]]


class Metrics:
    """Counts a runtime's calls from now on; see the module for the ways to read them.

    `prefix` begins every name. `max_tools` bounds how many tools (and upstreams) are told apart.
    """

    def __init__(
        self, runtime: "Runtime", *, prefix: str = "failwise", max_tools: int = 500
    ) -> None:
        if not prefix.isidentifier() or not prefix.isascii():
            raise UsageError(f"Metrics(prefix={prefix!r}): use ASCII letters, digits, underscores")
        self._runtime, self._prefix, self._max = runtime, prefix, max_tools
        self._lock = threading.Lock()
        self._counts: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in _COUNTERS}
        self._durations: dict[str, list[float]] = {}
        self._tools: set[str] = set()
        self._upstreams: set[str] = set()
        self._codes: dict[str, set[str]] = {}
        self._servers: list[ThreadingHTTPServer] = []
        runtime.on_result(self._count)

    # Counting

    def _count(self, result: ToolResult[Any]) -> None:
        failure = result.failure
        with self._lock:
            tool = self._known(self._tools, result.tool_name)
            self._add("tool_calls", (tool, _outcome(result)))
            if failure is not None:
                code = self._code(tool, failure.code)
                self._add("tool_failures", (tool, failure.category.value, code))
            failed = [each for each in result.attempts if each.number and each.failure]
            self._add("tool_attempts", (tool, "failed"), len(failed))
            self._add("tool_attempts", (tool, "ok"), max(0, result.sent - len(failed)))
            for attempt in failed[: result.retries]:
                assert attempt.failure is not None
                self._add("retries", (tool, attempt.failure.category.value))
            if result.effect is Effect.UNKNOWN:
                self._add("effect_unknown", (tool,))
            if "replayed" in result.extra:
                self._add("replays", (tool,))
                return
            seconds = result.duration_ms / 1000
            buckets = self._durations.get(tool)
            if buckets is None:
                buckets = self._durations[tool] = [0.0] * (len(_BOUNDS) + 2)
            for index, bound in enumerate(_BOUNDS):
                if seconds <= bound:
                    buckets[index] += 1
                    break
            buckets[-2] += 1
            buckets[-1] += seconds

    def _add(self, name: str, labels: tuple[str, ...], amount: float = 1) -> None:
        if amount:
            counts = self._counts[name]
            counts[labels] = counts.get(labels, 0) + amount

    def _known(self, names: set[str], name: str) -> str:
        if name not in names:
            if len(names) >= self._max:
                return _OTHER
            names.add(name)
        return name

    def _code(self, tool: str, code: str) -> str:
        codes = self._codes.setdefault(tool, set())
        if code not in codes:
            if len(codes) >= _CODES:
                return code.partition(".")[0] + "." + _OTHER
            codes.add(code)
        return code

    # Reading

    def families(self) -> list[Family]:
        """Every metric with its present values, as plain data."""
        prefix = self._prefix
        with self._lock:
            found = [
                Family(
                    f"{prefix}_{name}_total",
                    "counter",
                    meaning,
                    [
                        ("", dict(zip(labels, values, strict=True)), count)
                        for values, count in sorted(self._counts[name].items())
                    ],
                )
                for name, (labels, meaning) in _COUNTERS.items()
            ]
            found.append(
                Family(
                    f"{prefix}_tool_call_duration_seconds",
                    "histogram",
                    "Duration of tool calls, waits included.",
                    [
                        sample
                        for tool, buckets in sorted(self._durations.items())
                        for sample in _histogram(tool, buckets)
                    ],
                )
            )
        found += self._state()
        return found

    def _state(self) -> Iterator[Family]:
        """What is so at this moment: circuits, lost records, the version."""
        circuits: dict[str, float] = {}
        statistics = getattr(self._runtime._guards, "statistics", None)
        for row in statistics() if statistics is not None else ():
            name = self._known(self._upstreams, row["upstream"])
            circuits[name] = max(circuits.get(name, 0), _CIRCUIT.get(row["circuit"], 0))
        yield Family(
            f"{self._prefix}_circuit_state",
            "gauge",
            "The worst circuit of an upstream: 0 closed, 1 half open, 2 open.",
            [("", {"upstream": name}, state) for name, state in sorted(circuits.items())],
        )
        yield Family(
            f"{self._prefix}_records_dropped_total",
            "counter",
            "Records of calls that this process could not keep.",
            [("", {}, getattr(self._runtime.journal, "dropped", 0))],
        )
        yield Family(
            f"{self._prefix}_build_info",
            "gauge",
            "The version of Failwise, as a label.",
            [("", {"version": __version__}, 1)],
        )

    def text(self) -> str:
        """The metrics in Prometheus' text format (content type `CONTENT_TYPE`)."""
        lines: list[str] = []
        for family in self.families():
            lines += (
                f"# HELP {family.name} {family.meaning}",
                f"# TYPE {family.name} {family.kind}",
            )
            for suffix, labels, value in family.samples:
                told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
                lines.append(f"{family.name}{suffix}{'{' + told + '}' if told else ''} {value:g}")
        return "\n".join(lines) + "\n"

    def register(self, registry: Any = None) -> None:
        """Export through a registry of ``prometheus_client`` (None: its default one).

        Raises `ConfigurationError` where ``prometheus_client`` is not installed.
        """
        try:
            import prometheus_client
        except ImportError as error:
            raise ConfigurationError(
                "registering needs prometheus_client: pip install 'failwise[prometheus]'"
            ) from error
        (prometheus_client.REGISTRY if registry is None else registry).register(_Collector(self))

    def serve(self, port: int, *, host: str = "127.0.0.1", token: str | None = None) -> int:
        """Answer ``/metrics`` in a thread of its own; the port (0: any) is given back.

        With `token`, requests must say ``Authorization: Bearer TOKEN``. Raises `UsageError` for another
        host than loopback without one, `OSError` where the port is taken.
        """
        if host not in _LOOPBACK and not token:
            raise UsageError(
                f"serve(host={host!r}): beyond this machine a token is needed; say token=..."
            )
        server = _server(host, port, token, self)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, name="failwise-metrics", daemon=True).start()
        return int(server.server_address[1])

    def close(self) -> None:
        """End the servers."""
        while self._servers:
            server = self._servers.pop()
            server.shutdown()
            server.server_close()


_COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "tool_calls": (("tool", "outcome"), "Finished calls: ok, recovered, degraded, failed."),
    "tool_failures": (("tool", "category", "code"), "Calls that ended in a failure."),
    "tool_attempts": (("tool", "result"), "Requests sent."),
    "retries": (("tool", "reason"), "Requests sent again, by the category of what went before."),
    "effect_unknown": (("tool",), "Calls whose side effect may have happened."),
    "replays": (("tool",), "Calls answered from the record of an effect that was done."),
}


def _outcome(result: ToolResult[Any]) -> str:
    if not result.success:
        return "failed"
    if result.degraded_to is not None:
        return "degraded"
    return "recovered" if any(each.failure for each in result.attempts) else "ok"


def _histogram(tool: str, buckets: list[float]) -> Iterable[tuple[str, dict[str, str], float]]:
    below = 0.0
    for index, bound in enumerate(_BOUNDS):
        below += buckets[index]
        yield "_bucket", {"tool": tool, "le": f"{bound:g}"}, below
    yield "_bucket", {"tool": tool, "le": "+Inf"}, buckets[-2]
    yield "_sum", {"tool": tool}, buckets[-1]
    yield "_count", {"tool": tool}, buckets[-2]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Collector:
    """Our families in the words of ``prometheus_client``."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        from prometheus_client import Metric

        for family in self._metrics.families():
            name = family.name.removesuffix("_total")
            metric = Metric(name, family.meaning, family.kind)
            for suffix, labels, value in family.samples:
                total = "_total" if family.kind == "counter" else suffix
                metric.add_sample(name + total, labels, value)
            yield metric


def _server(host: str, port: int, token: str | None, metrics: Metrics) -> "ThreadingHTTPServer":
    import socket
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
                self._answer(401, "say Authorization: Bearer TOKEN\n")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, "the metrics are at /metrics\n")
            else:
                self._answer(200, metrics.text())

        def _answer(self, status: int, text: str) -> None:
            body = text.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *given: Any) -> None:
            """Scrapes are not news."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True

    return Server((host, port), Handler)
