"""The ASGI application: routes, pages with their JSON twins, changes, live updates."""

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from failwise.dashboard import actions, groups, kinds, overview, policies, records, search
from failwise.dashboard.answers import Answers, Readers
from failwise.dashboard.asked import Asked, asked
from failwise.dashboard.gate import Door, Gate, Headers
from failwise.dashboard.live import Live
from failwise.dashboard.recent import RecentRepairs
from failwise.dashboard.view import View
from failwise.journal.reader import Place, Reader
from failwise.vocabulary.errors import FailwiseError, UsageError
from failwise.vocabulary.records import record

if TYPE_CHECKING:
    from jinja2 import Environment

    from failwise.runtime.runtime import Runtime
    from failwise.vocabulary.result import Language

FRESH: Final = 1.0
"""Seconds for which an answer is given to all who ask the same."""
_FORM: Final = 64_000
"""Bytes that a form may have."""
_YEAR: Final = 365 * 86_400
_STATIC: Final[Mapping[str, str]] = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@record
class Page:
    """A page: `data` gives what its JSON twin shows and its template renders; None: no such thing.

    An answer is at most `fresh` seconds old. `door` has to be open to whoever asks."""

    path: str
    template: str
    data: Callable[[Reader, Asked, Mapping[str, str], float], dict[str, Any] | None]
    fresh: float = FRESH
    door: Door = "pages"


def app(
    journal: Place = None,
    *,
    runtime: "Runtime | None" = None,
    token: str | None = None,
    raw_token: str | None = None,
    read_only: bool = False,
    hosts: Sequence[str] = (),
    signed_in: bool = False,
    policy: Callable[[], Mapping[str, Any]] | None = None,
    proxies: Callable[[], Sequence[Mapping[str, Any]]] | None = None,
    clock: Callable[[], float] = time.time,
) -> Any:
    """The dashboard on a journal, as an ASGI application.

    - `journal`: a path or URL, an open `Journal`, or None for `runtime`'s, else the usual place
    - `runtime`: the one that runs in this process; *Upstreams* then shows circuits, budgets and
      cool-downs as they are now, and a call its repairs, which a journal only counts
    - `token`: pages are shown to whoever tells it (``Authorization: Bearer``, or the sign-in page)
    - `raw_token`: another token, for raw answers (``[journal] raw``); without it nobody sees them
    - `read_only`: nothing can be settled, named or muted
    - `hosts`: names under which it is reached besides loopback's, such as ``"ops.example"`` or
      ``"ops.example:8443"``; ``"*"`` for any. They need `token`, unless `signed_in` says that whoever
      mounts it lets only the right people through
    - `policy`: gives the policy in force as ``failwise policy --json`` prints it; without it the default
      preset is shown
    - `proxies`: gives the state of MCP proxies, as ``failwise mcp status --json`` does

    Nothing is opened before the first request. Raises `UsageError`.
    """
    if hosts and token is None and not signed_in:
        raise UsageError(
            "hosts: beyond this machine a token is needed; give token=, or signed_in=True where the "
            "application around it has signed people in"
        )
    if journal is None and runtime is not None:
        journal = runtime.journal
    look = runtime.upstreams if runtime is not None else None
    repairs = RecentRepairs()
    if runtime is not None:
        runtime.on_result(repairs)
    dashboard = _Dashboard(
        Readers(journal),
        Gate(token, raw_token, hosts),
        _pages(look, repairs, policy, proxies),
        read_only,
        clock,
    )
    return dashboard.application()


class _Dashboard:
    """One dashboard: its journal, its gate, its pages."""

    def __init__(
        self,
        readers: Readers,
        gate: Gate,
        pages: tuple[Page, ...],
        read_only: bool,
        clock: Callable[[], float],
    ) -> None:
        self.readers, self.gate, self.pages = readers, gate, pages
        self.read_only, self.clock = read_only, clock
        self.answers = Answers()
        self.live = Live(self._newest)

    def application(self) -> Any:
        routes: list[Route] = []
        for page in self.pages:
            name = page.path if page.path != "/" else "/overview"
            routes.append(Route(page.path, self._shown(page, html=True)))
            routes.append(Route(f"/api{name}", self._shown(page, html=False)))
        routes += [
            Route("/sign-in", self.sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/change", self.change, methods=["POST"]),
            Route("/live", self.events),
            Route("/static/{name}", self.static),
        ]
        handlers: dict[Any, Any] = {HTTPException: self._refused, FailwiseError: self._wrong}
        return Headers(Starlette(routes=routes, exception_handlers=handlers))

    # -- pages -------------------------------------------------------------------------------------

    def _shown(self, page: Page, *, html: bool) -> Callable[[Request], Any]:
        async def shown(request: Request) -> Response:
            refused = self._stopped(request, page.door, html=html)
            if refused is not None:
                return refused
            parameters = dict(request.query_params)
            data = await run_in_threadpool(self._data, page, parameters)
            if data is None:
                raise HTTPException(404)
            if not html:
                return JSONResponse(data)
            view = self._view(request, asked(parameters, self.clock()))
            text = await run_in_threadpool(_rendered, page.template, view, data)
            return self._kept(request, view, HTMLResponse(text))

        return shown

    def _data(self, page: Page, parameters: Mapping[str, str]) -> dict[str, Any] | None:
        now = self.clock()
        wanted = {name: one for name, one in parameters.items() if name not in ("lang", "theme")}
        key = (page.path, *sorted(wanted.items()))

        def ask() -> dict[str, Any] | None:
            with self.readers.lent() as reader:
                return page.data(reader, asked(wanted, now), wanted, now)

        found: dict[str, Any] | None = self.answers.get(key, ask, page.fresh)
        return found

    def _newest(self) -> tuple[Any, ...]:
        with self.readers.lent() as reader:
            return records.newest(reader)

    # -- who may -----------------------------------------------------------------------------------

    def _stopped(self, request: Request, door: Door, *, html: bool) -> Response | None:
        """What is answered instead of the page, where somebody may not see it."""
        self._named_rightly(request)
        told = request.headers.get("authorization", "")
        for one in dict.fromkeys(("pages", door)):
            if self.gate.open_to(one, request.cookies, told):
                continue
            if not self.gate.guarded(one):
                raise HTTPException(404)
            if not html:
                answer = {"error": "say Authorization: Bearer TOKEN"}
                return JSONResponse(answer, 401, {"www-authenticate": "Bearer"})
            following = request.url.path.removeprefix(_base(request))
            if request.url.query:
                following += f"?{request.url.query}"
            view = self._view(request)
            return RedirectResponse(view.url("/sign-in", door=one, next=following), 303)
        return None

    def _named_rightly(self, request: Request) -> None:
        if not self.gate.host_fits(request.headers.get("host", "")):
            raise HTTPException(421)

    async def sign_in(self, request: Request) -> Response:
        """The form that asks for a token, and the cookie for whoever knows it."""
        self._named_rightly(request)
        view = self._view(request)
        door: Door = "raw" if view.parameters.get("door") == "raw" else "pages"
        if not self.gate.guarded(door):
            raise HTTPException(404)
        wrong = False
        if request.method == "POST":
            form = await self._form(request)
            if self.gate.opens(door, form.get("token", "")):
                answer: Response = RedirectResponse(view.url(_inside(form.get("next"))), 303)
                name, value = self.gate.pass_for(door)
                _set(answer, request, name, value)
                return answer
            wrong = True
        data = {"door": door, "wrong": wrong, "next": _inside(view.parameters.get("next"))}
        text = _rendered("sign_in.html", view, data)
        return self._kept(request, view, HTMLResponse(text, 403 if wrong else 200))

    async def sign_out(self, request: Request) -> Response:
        """Take the passes back."""
        self._named_rightly(request)
        await self._form(request)
        view = self._view(request)
        answer = RedirectResponse(view.url("/sign-in"), 303)
        for door in ("pages", "raw"):
            answer.delete_cookie(self.gate.pass_for(door)[0], path=_base(request) or "/")
        return answer

    async def change(self, request: Request) -> Response:
        """Do what a form asks for: settle an effect; name, merge, split or mute a cluster."""
        refused = self._stopped(request, "pages", html=False)
        if refused is not None:
            return refused
        if self.read_only:
            raise HTTPException(403, "read_only")
        form = await self._form(request)

        def do() -> None:
            with self.readers.changing() as reader:
                actions.do(reader, form)

        await run_in_threadpool(do)
        self.answers.forget()
        view = self._view(request)
        return RedirectResponse(view.url(_inside(form.get("next"))), 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """The fields of a form that this dashboard made for this browser. Several values of one name
        are joined with a space."""
        host = request.headers.get("host", "")
        if not self.gate.origin_fits(request.headers.get("origin"), host):
            raise HTTPException(403, "origin")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _FORM:
                raise HTTPException(413)
        try:
            fields = parse_qs(body.decode("utf-8"), max_num_fields=500)
        except ValueError:
            raise HTTPException(400) from None
        form = {name: " ".join(values) for name, values in fields.items()}
        if not self.gate.form_fits(request.cookies, form.get("mark", "")):
            raise HTTPException(403, "mark")
        return form

    # -- the rest ----------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        """Server-sent events: something has changed."""
        refused = self._stopped(request, "pages", html=False)
        if refused is not None:
            return refused
        if self.live.full:
            return JSONResponse({"error": "too many viewers"}, 503, {"retry-after": "30"})
        return StreamingResponse(self.live.lines(), media_type="text/event-stream")

    async def static(self, request: Request) -> Response:
        """The style sheet, the script, the icon."""
        self._named_rightly(request)
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(_static(name), media_type=_STATIC[name], headers=kept)

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = error.detail if error.detail in ("read_only", "origin", "mark") else ""
        return self._told(request, error.status_code, kind or str(error.status_code), "")

    async def _wrong(self, request: Request, error: Exception) -> Response:
        return self._told(request, 400 if isinstance(error, UsageError) else 503, "", str(error))

    def _told(self, request: Request, status: int, kind: str, reason: str) -> Response:
        if _inner(request).startswith("/api/"):
            return JSONResponse({"error": reason or kind, "status": status}, status)
        if status == 421:  # whose name is not ours gets nothing of us
            return Response("This host name is not one of the dashboard's.\n", 421)
        view = self._view(request)
        data = {"status": status, "kind": kind, "reason": reason}
        return HTMLResponse(_rendered("trouble.html", view, data), status)

    def _view(self, request: Request, wanted: Asked | None = None) -> View:
        parameters = dict(request.query_params)
        lang, theme = _lang(request, parameters), _theme(request, parameters)
        visitor, _ = self._visitor(request)
        return View(
            base=_base(request),
            path=_inner(request),
            parameters={k: v for k, v in parameters.items() if k not in ("lang", "theme")},
            lang=lang,
            theme=theme,
            now=self.clock(),
            mark=self.gate.form_mark(visitor),
            read_only=self.read_only,
            asked=wanted,
            signed=self.gate.guarded("pages"),
        )

    def _visitor(self, request: Request) -> tuple[str, bool]:
        known: tuple[str, bool] | None = getattr(request.state, "visitor", None)
        if known is None:
            known = request.state.visitor = self.gate.visitor(request.cookies)
        return known

    def _kept(self, request: Request, view: View, answer: Response) -> Response:
        """The answer, with the cookies that remember this browser and what was chosen."""
        visitor, new = self._visitor(request)
        if new:
            _set(answer, request, self.gate.visitor_cookie, visitor)
        for name, value in (("lang", view.lang), ("theme", view.theme)):
            if name in request.query_params:
                _set(answer, request, f"failwise_{name}", value, _YEAR)
        return answer


def _pages(
    look: groups.Look | None,
    repairs: RecentRepairs,
    policy: Callable[[], Mapping[str, Any]] | None,
    proxies: Callable[[], Sequence[Mapping[str, Any]]] | None,
) -> tuple[Page, ...]:
    def call(reader: Reader, _: Asked, told: Mapping[str, str], __: float) -> Any:
        wanted = asked({"since": told.get("at", "")}, 0.0).since
        found = records.call(reader, told.get("run", ""), told.get("id", ""), wanted)
        if found is not None:
            found["repairs"] = repairs.of(found["call"]["run_id"], found["call"]["call_id"])
        return found

    def raw(reader: Reader, _: Asked, told: Mapping[str, str], __: float) -> Any:
        at = asked({"since": told.get("at", "")}, 0.0).since or 0.0
        return {"rows": records.raw_answers(reader, told.get("id", ""), at)}

    def calls(reader: Reader, wanted: Asked, _: Mapping[str, str], __: float) -> Any:
        found = search.found_calls(reader, wanted, 50)
        following = found.following
        return {
            "rows": found.rows,
            "next": f"{following[0]!r}-{following[1]}" if following else None,
            "searched_to": found.searched_to,
        }

    def grouped(kind: groups.Kind) -> Any:
        def data(reader: Reader, wanted: Asked, told: Mapping[str, str], now: float) -> Any:
            sort = told.get("sort") or ("retries" if kind == "upstream" else "failures")
            found = groups.groups(reader, wanted, kind, sort, now, look)
            if kind == "upstream":
                found["proxies"] = list(proxies()) if proxies is not None else []
            return found

        return data

    return (
        Page("/", "overview.html", lambda r, a, _, n: overview.overview(r, a, n), 2.0),
        Page("/tools", "groups.html", grouped("tool")),
        Page("/upstreams", "groups.html", grouped("upstream")),
        Page(
            "/clusters",
            "clusters.html",
            lambda r, a, t, _: kinds.kinds(r, a, muted=bool(t.get("muted"))),
            5.0,
        ),
        Page("/cluster", "cluster.html", lambda r, a, t, _: kinds.kind(r, a, t.get("id", "")), 5.0),
        Page("/calls", "calls.html", calls),
        Page("/call", "call.html", call),
        Page("/call/raw", "raw.html", raw, 0.0, "raw"),
        Page("/run", "run.html", lambda r, _, t, __: records.run(r, t.get("id", ""))),
        Page("/effects", "effects.html", lambda r, _, __, n: records.effects(r, n)),
        Page("/policy", "policy.html", lambda *_: policies.in_force(policy), 5.0),
    )


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("failwise.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["stamps"] = {name: _stamp(name) for name in _STATIC}
    return made


def _rendered(template: str, view: View, data: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(v=view, say=view.say, **data)


@functools.cache
def _static(name: str) -> bytes:
    return resources.files("failwise.dashboard").joinpath("static", name).read_bytes()


def _stamp(name: str) -> str:
    """Changes with the file, so that browsers may keep it for ever."""
    return hashlib.sha256(_static(name)).hexdigest()[:12]


def _base(request: Request) -> str:
    """The path that this is mounted below, or a proxy serves it under."""
    base: str = request.scope.get("root_path", "").rstrip("/")
    return base


def _inner(request: Request) -> str:
    return request.url.path.removeprefix(_base(request)) or "/"


def _inside(path: str | None) -> str:
    """A path of this dashboard: nothing that leads elsewhere."""
    parts = urlsplit(path or "/")
    odd = parts.scheme or parts.netloc or not (path or "/").startswith("/") or "\\" in (path or "")
    if odd or (path or "").startswith("//"):
        return "/"
    return path or "/"


def _set(
    answer: Response, request: Request, name: str, value: str, seconds: int | None = None
) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=_base(request) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _lang(request: Request, parameters: Mapping[str, str]) -> "Language":
    told = parameters.get("lang") or request.cookies.get("failwise_lang", "")
    if told not in ("en", "zh"):
        wanted = request.headers.get("accept-language", "")
        told = wanted.strip().partition(",")[0].partition("-")[0].lower()
    return "zh" if told == "zh" else "en"


def _theme(request: Request, parameters: Mapping[str, str]) -> str:
    told = parameters.get("theme") or request.cookies.get("failwise_theme", "")
    return told if told in ("light", "dark") else "auto"
