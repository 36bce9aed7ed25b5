"""The ASGI application: routes, pages with their JSON twins, changes, live updates."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

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

from failwise.dashboard import actions, browser, records, rendering
from failwise.dashboard.answers import SUMMED, Answers, Readers
from failwise.dashboard.asked import Asked, asked
from failwise.dashboard.gate import Door, Gate, Headers
from failwise.dashboard.live import Live
from failwise.dashboard.pages import Page, pages
from failwise.dashboard.view import View
from failwise.journal.reader import Place
from failwise.vocabulary.errors import FailwiseError, UsageError

if TYPE_CHECKING:
    import os

    from failwise.runtime.runtime import Runtime

_FORM: Final = 64_000
"""Bytes that a form may have."""
_RENDERED: Final = 30.0
"""Seconds for which a rendering is good as long as its data is."""


def app(
    journal: Place = None,
    *,
    claims: "str | os.PathLike[str] | None" = None,
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
    - `claims`: where claims are kept, if not in the journal's own place (``[journal] claims``)
    - `runtime`: the one that runs in this process; *Upstreams* then shows circuits, budgets and
      cool-downs as they are now
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
    dashboard = _Dashboard(
        Readers(journal, claims),
        Gate(token, raw_token, hosts),
        pages(look, policy, proxies),
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
        self._summed = float("-inf")
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
        return Headers(
            Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Where a server serves it by itself, connections end with that."""
        yield
        self.answers.close()
        self.readers.close()

    # -- pages -------------------------------------------------------------------------------------

    def _shown(self, page: Page, *, html: bool) -> Callable[[Request], Any]:
        async def shown(request: Request) -> Response:
            refused = self._stopped(request, page.door, html=html)
            if refused is not None:
                return refused
            parameters = dict(request.query_params)
            data, key = await self._data(page, parameters)
            if data is None:
                raise HTTPException(404)
            view = self._view(request, asked(parameters, self.clock())) if html else None
            found = await self._rendered(page, key, view, data)
            mark = self.gate.form_mark(self._visitor(request)[0]) if html else ""
            headers = {"etag": found.tag(mark)}
            if headers["etag"] in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            if view is None:
                return Response(found.body, headers=headers, media_type="application/json")
            return self._kept(request, view, HTMLResponse(found.of(mark), headers=headers))

        return shown

    async def _data(
        self, page: Page, parameters: Mapping[str, str]
    ) -> tuple[dict[str, Any] | None, tuple[Any, ...]]:
        """What a page shows, and what tells it from others: found once for all who ask."""
        now = self.clock()
        wanted = {name: one for name, one in parameters.items() if name not in ("lang", "theme")}
        key = (page.path, *sorted(wanted.items()))

        def ask() -> dict[str, Any] | None:
            with self.readers.lent() as reader:
                return page.data(reader, asked(wanted, now), wanted, now)

        told = self.answers.told(key, ask, page.fresh)
        if time.monotonic() - self._summed > SUMMED:
            self._summed = time.monotonic()
            self.answers.soon(self.readers.sum_up)
        return await asyncio.wrap_future(told), key

    async def _rendered(
        self, page: Page, key: tuple[Any, ...], view: View | None, data: dict[str, Any]
    ) -> rendering.Shown:
        """The page, or without a view its twin: rendered once for all who see the same."""

        def render() -> rendering.Shown:
            if view is None:
                return rendering.twin(data)
            return rendering.page(page.template, view, data)

        if not page.fresh:  # for whoever asked, and nobody else
            return await run_in_threadpool(render)
        look = None if view is None else (view.base, view.lang, view.theme, page.path)
        # The rendering keeps its data alive, so that no other can have the same identity.
        told = self.answers.told((id(data), look, *key), render, _RENDERED)
        found: rendering.Shown = await asyncio.wrap_future(told)
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
            following = request.url.path.removeprefix(browser.base(request))
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
                answer: Response = RedirectResponse(view.url(browser.inside(form.get("next"))), 303)
                name, value = self.gate.pass_for(door)
                browser.remember(answer, request, name, value)
                return answer
            wrong = True
        data = {"door": door, "wrong": wrong, "next": browser.inside(view.parameters.get("next"))}
        text = rendering.rendered("sign_in.html", view, data)
        return self._kept(request, view, HTMLResponse(text, 403 if wrong else 200))

    async def sign_out(self, request: Request) -> Response:
        """Take the passes back."""
        self._named_rightly(request)
        await self._form(request)
        view = self._view(request)
        answer = RedirectResponse(view.url("/sign-in"), 303)
        for door in ("pages", "raw"):
            answer.delete_cookie(self.gate.pass_for(door)[0], path=browser.base(request) or "/")
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
        return RedirectResponse(view.url(browser.inside(form.get("next"))), 303)

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
        if name not in rendering.STATIC:
            raise HTTPException(404)
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(rendering.file(name), media_type=rendering.STATIC[name], headers=kept)

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = error.detail if error.detail in ("read_only", "origin", "mark") else ""
        return self._told(request, error.status_code, kind or str(error.status_code), "")

    async def _wrong(self, request: Request, error: Exception) -> Response:
        return self._told(request, 400 if isinstance(error, UsageError) else 503, "", str(error))

    def _told(self, request: Request, status: int, kind: str, reason: str) -> Response:
        if browser.inner(request).startswith("/api/"):
            return JSONResponse({"error": reason or kind, "status": status}, status)
        if status == 421:  # whose name is not ours gets nothing of us
            return Response("This host name is not one of the dashboard's.\n", 421)
        view = self._view(request)
        data = {"status": status, "kind": kind, "reason": reason}
        return HTMLResponse(rendering.rendered("trouble.html", view, data), status)

    def _view(self, request: Request, wanted: Asked | None = None) -> View:
        parameters = dict(request.query_params)
        lang, theme = browser.language(request, parameters), browser.theme(request, parameters)
        visitor, _ = self._visitor(request)
        return View(
            base=browser.base(request),
            path=browser.inner(request),
            parameters={k: v for k, v in parameters.items() if k not in ("lang", "theme")},
            lang=lang,
            theme=theme,
            now=self.clock(),
            # Rendered for all, where all see the same.
            mark=rendering.MARK if wanted is not None else self.gate.form_mark(visitor),
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
            browser.remember(answer, request, self.gate.visitor_cookie, visitor)
        for name, value in (("lang", view.lang), ("theme", view.theme)):
            if name in request.query_params:
                browser.remember(answer, request, f"failwise_{name}", value, browser.YEAR)
        return answer
