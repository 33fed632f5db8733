"""The ASGI application: routes, templates, errors. Each request brings its `Visit` in the scope; nothing is kept between requests."""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl

import jinja2
import orjson
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metastore.call_time import PARTS
from metastore.console import formats, parameters
from metastore.console.actions import ACTIONS, Action, path_of
from metastore.console.drawing import draw
from metastore.console.openapi import describe
from metastore.console.pages.table import PAGES, Page
from metastore.console.security import HEADERS, check_action, check_token, cookie, new_token
from metastore.console.visit import UI, Visit
from metastore.errors import InvalidInput, MetastoreError, NoSuchLock, NoSuchObject, NoSuchTransaction, PermissionDenied

API = "/api/v1"
LOGIN = f"{UI}/login"
"""The page where visitors without a login are asked for one."""
STATUS: dict[type[MetastoreError], int] = {PermissionDenied: 403, NoSuchObject: 404, NoSuchTransaction: 404, NoSuchLock: 404}
"""HTTP status by class of error; any other error is 400."""

Endpoint = Callable[[Request], Awaitable[Response]]


def _visit(request: Request) -> Visit:
    visit: Visit = request.scope["visit"]
    return visit


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value) + b"\n", status, media_type="application/json")


class Static:
    """The files that pages load; their addresses change with their content."""

    def __init__(self) -> None:
        folder = resources.files("metastore.console") / "static"
        self.files = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
        self._versions = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in self.files.items()}

    def path(self, name: str) -> str:
        return f"{UI}/static/{name}?v={self._versions[name]}"

    async def serve(self, request: Request) -> Response:
        body = self.files.get(request.path_params["name"])
        if body is None:
            raise HTTPException(404)
        kind = mimetypes.guess_type(request.path_params["name"])[0] or "text/plain"
        return Response(body, media_type=kind, headers={"Cache-Control": "private, max-age=31536000, immutable"})


class Templates:
    """The templates, with the functions that they may use."""

    def __init__(self, static: Static) -> None:
        self._jinja = jinja2.Environment(
            loader=jinja2.PackageLoader("metastore.console"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._jinja.filters.update({name: getattr(formats, name) for name in ("moment", "duration", "ago", "size", "count", "code")})
        self._jinja.globals.update(link=formats.link, act=path_of, draw=draw, static=static.path, pages=PAGES, parts=PARTS)

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        done = ACTIONS.get(request.query_params.get("done", ""))
        values = {"visit": _visit(request), "here": request.url.path, "twin": None, "done": done, "status": status, **values}
        headers = {"Cache-Control": "no-store"}
        return HTMLResponse(self._jinja.get_template(template).render(values), status, headers=headers)


class _Pages:
    """The endpoints."""

    def __init__(self) -> None:
        self.static = Static()
        self.templates = Templates(self.static)

    def html(self, page: Page) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            given = {**request.query_params, **request.path_params}
            data = page.look(_visit(request), **parameters.read(page.look, given))
            path = f"{API}{page.twin if page.path == '/' else request.url.path.removeprefix(UI)}"
            twin = f"{path}?{request.url.query}" if request.url.query else path
            return self.templates.render(request, page.template, data=data, page=page, twin=twin)

        return endpoint

    def twin(self, page: Page) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            given = {**request.query_params, **request.path_params}
            return _json(page.look(_visit(request), **parameters.read(page.look, given)))

        return endpoint

    def action(self, action: Action) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visit, encrypted = _visit(request), request.url.scheme == "https"
            if request.method == "POST":
                check_action(visit)
                form = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
                check_token(request.cookies, form.get("token", ""), encrypted=encrypted)
                done = action.run(visit, **parameters.read(action.run, form))
                return RedirectResponse(formats.link(done.path, done=action.name), 303)
            given = parameters.read(action.plan, request.query_params)
            name, path = cookie(encrypted=encrypted)
            token = request.cookies.get(name) or new_token()
            plan = action.plan(visit, **given)
            response = self.templates.render(request, "action.html", action=action, plan=plan, given=given, token=token)
            response.set_cookie(name, token, path=path, secure=encrypted, httponly=True, samesite="strict")
            return response

        return endpoint

    def action_twin(self, action: Action) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            visit = _visit(request)
            check_action(visit)
            if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                raise HTTPException(415, "Send the parameters as JSON, with Content-Type: application/json")
            try:
                given = json.loads(await request.body())
            except ValueError as error:
                raise InvalidInput(f"The body is not JSON: {error}") from error
            if not isinstance(given, dict):
                raise InvalidInput("The body is not a JSON object with the parameters")
            return _json(action.run(visit, **parameters.read(action.run, given)))

        return endpoint

    async def logged_in(self, request: Request) -> Response:
        """Answer a visitor after the login page: the login is done, or is not possible."""
        if _visit(request).mechanism:
            return RedirectResponse(f"{UI}/", 303)
        return self.templates.render(request, "error.html", 403, text="This server takes no passwords: let a proxy send a token.")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer a request that failed with an expected error."""
        if isinstance(error, HTTPException):
            status, text = error.status_code, error.detail
        else:
            assert isinstance(error, MetastoreError)
            status, text = next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 400), error.message
        if request.url.path.startswith(API):
            return _json({"error": text}, status)
        return self.templates.render(request, "error.html", status, text=text)


class _WithHeaders:
    """Adds the headers of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, sending)


async def _to_front(_request: Request) -> Response:
    return RedirectResponse(f"{UI}/", 307)


async def _openapi(request: Request) -> Response:
    return _json(describe(_visit(request).version))


def make_app() -> ASGIApp:
    """Return the application."""
    pages = _Pages()
    routes = [
        Route(UI, _to_front),
        Route(LOGIN, pages.logged_in),
        Route(f"{UI}/static/{{name}}", pages.static.serve),
        Route(f"{API}/openapi.json", _openapi),
        *(Route(f"{UI}{page.path}", pages.html(page)) for page in PAGES),
        *(Route(f"{API}{page.twin}", pages.twin(page)) for page in PAGES),
        *(Route(f"{UI}/actions/{name}", pages.action(each), methods=["GET", "POST"]) for name, each in ACTIONS.items()),
        *(Route(f"{API}/actions/{name}", pages.action_twin(each), methods=["POST"]) for name, each in ACTIONS.items()),
    ]
    handlers: Mapping[Any, Any] = {MetastoreError: pages.failed, HTTPException: pages.failed}
    return _WithHeaders(Starlette(routes=routes, exception_handlers=handlers))
