"""Who may see the pages, and what the pages may do."""

from __future__ import annotations

import hmac
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "gradclinic"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# Styles are what plotly needs: it sets them on the elements it draws. Scripts are our own files only.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """In front of the whole application. Without a token only this machine may ask, by its own name:
    a page from elsewhere whose name was made to lead here is turned away."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) if self._token is None else self._asked_for_token(scope, self._token)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (answer or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        host = Headers(scope=scope).get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in _LOOPBACK:
            return None
        return PlainTextResponse("this dashboard answers on 127.0.0.1 only", status_code=421)

    def _asked_for_token(self, scope: Scope, token: str) -> Response | None:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and hmac.compare_digest(given.encode(), token.encode()):
            # Out of the address, where it would be seen and kept, into a cookie for this site alone.
            answer = RedirectResponse(scope["path"], status_code=303)
            answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
            return answer
        cookies = SimpleCookie(Headers(scope=scope).get("cookie", ""))
        kept = cookies[_COOKIE].value if _COOKIE in cookies else ""
        if kept and hmac.compare_digest(kept.encode(), token.encode()):
            return None
        return PlainTextResponse("open the address with the token that was printed", status_code=403)
