"""The answers of the status page's routes: the page, its parts, all volumes, and the override.

Setting an override takes two steps: the form, then its effects, which the operator confirms with
the token. The same ``Changes`` as for ``PUT /v1/override`` make it.

Example: ``GET /`` is the page; an open one requests ``GET /status/parts`` for what has changed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sidecar.api.answers import NO_STORE
from sidecar.api.change_routes import check_token
from sidecar.api.changes import Changes, OverrideRequest
from sidecar.status import runbooks
from sidecar.status.effects import (
    ending_command,
    ending_effects,
    setting_command,
    setting_effects,
)
from sidecar.status.forms import DURATIONS, FACTORS, OverrideForm, form_fields
from sidecar.status.headline import sentence
from sidecar.status.inputs import StatusInputs
from sidecar.status.moments import Now
from sidecar.status.pages import CONTENT_SECURITY_POLICY, MEDIA_TYPES, file, page
from sidecar.status.view import StatusView, status_view
from sidecar.status.volume_rows import lines_in_bars, volume_rows

ROWS: Final = 100
"""The number of volumes on one page of the list."""

_HEADERS: Final = {
    **NO_STORE,
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    # With "no-referrer" a browser would send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_MISTYPED: Final = "That is not the token in the file that SIDECAR_TOKEN_FILE names."
_MOST_PAGES: Final = 1_000_000
_FOR_GOOD: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


@dataclass(slots=True)
class Answers:
    """Answers with pages, with one method for each route."""

    inputs: StatusInputs
    changes: Changes
    peers: Sequence[str]

    async def status(self, _request: Request) -> Response:
        """The page."""
        return _html(page("page.html", view=self._view()))

    async def parts(self, _request: Request) -> Response:
        """Answer with the parts of an open page that are renewed."""
        return _html(page("sections.html", view=self._view()))

    async def volumes(self, request: Request) -> Response:
        """Answer with all volumes, a hundred on a page."""
        now = self._now()
        number = _number(request.query_params.get("page", "1"))
        first = (number - 1) * ROWS
        snapshot = self.inputs.board.snapshot
        rows, count = volume_rows(snapshot, now, first, ROWS)
        values = {
            "rows": rows,
            "count": count,
            "number": number,
            "pages": max(1, -(-count // ROWS)),
            "lines": lines_in_bars(snapshot.rules),
            "made": now.moment(now.now),
        }
        return _html(page("volumes.html", **values))

    async def runbooks(self, _request: Request) -> Response:
        """Answer with the list of all runbooks."""
        return await _runbooks()

    async def runbook(self, request: Request) -> Response:
        """Answer with one runbook. Its name may end in .md, as it does on a Git host."""
        name = request.path_params["name"].removesuffix(".md")
        if name not in runbooks.names():
            return await _runbooks("No runbook has this name.", 404)
        text = await asyncio.to_thread(runbooks.runbook, name)
        return _html(page("runbook.html", title=name, text=text, names=()))

    async def form(self, _request: Request) -> Response:
        """Answer with the form for an override."""
        return self._form(OverrideForm(), [])

    async def ask(self, request: Request) -> Response:
        """Answer with the effects of the override, to be confirmed with the token."""
        form = OverrideForm.of(await form_fields(request))
        requested = form.checked()
        if isinstance(requested, list):
            return self._form(form, requested)
        return self._confirm(request, form, requested)

    async def set(self, request: Request) -> Response:
        """Sets it."""
        fields = await form_fields(request)
        form = OverrideForm.of(fields)
        requested = form.checked()
        if isinstance(requested, list):
            return self._form(form, requested)
        try:
            await check_token(self.inputs.tokens, fields.get("token", "").encode())
        except HTTPException as error:
            return self._confirm(request, form, requested, error)
        await self.changes.set_override(requested, request)
        return RedirectResponse("/", 303, headers=_HEADERS)

    async def confirm_end(self, request: Request, error: HTTPException | None = None) -> Response:
        """Answer with the effects of ending the override."""
        return _confirm(
            error,
            title="End the override?",
            effects=ending_effects(self.inputs, self._now()),
            command=ending_command(self._sidecars(request)),
            filled_in=self._filled_in(),
            action="/override/end",
            fields=(),
            does="End it",
        )

    async def end(self, request: Request) -> Response:
        """Ends it."""
        fields = await form_fields(request)
        try:
            await check_token(self.inputs.tokens, fields.get("token", "").encode())
        except HTTPException as error:
            return await self.confirm_end(request, error)
        await self.changes.clear_override(request)
        return RedirectResponse("/", 303, headers=_HEADERS)

    async def file(self, request: Request) -> Response:
        """Answer with the style, the script or the icon."""
        name = request.url.path.rpartition("/")[2]
        return Response(file(name), headers=_FOR_GOOD, media_type=MEDIA_TYPES[name])

    def refused(self, error: HTTPException) -> Response:
        """Answer with a refusal as a page."""
        html = page("refused.html", problem=error.detail)
        return _html(html, error.status_code, error.headers)

    def _now(self) -> Now:
        return Now(self.inputs.board.now(), self.changes.wall)

    def _view(self) -> StatusView:
        return status_view(self.inputs, self._now())

    def _form(self, form: OverrideForm, problems: list[str]) -> Response:
        board = self.inputs.board
        values = {
            "sentence": sentence(board.snapshot, board.readers.counts(board.now())),
            "problems": problems,
            "form": form,
            "factors": FACTORS,
            "durations": DURATIONS,
        }
        return _html(page("override.html", **values), 422 if problems else 200)

    def _sidecars(self, request: Request) -> str:
        """List this sidecar, by the address of the request, and its peers."""
        if not self.peers:
            return "HOST:PORT,HOST:PORT"
        own = f"{request.url.scheme}://{request.url.netloc}"
        return ",".join(dict.fromkeys((own, *self.peers)))

    def _filled_in(self) -> str:
        """Name the parts of the command that an operator has to fill in."""
        theirs = "" if self.peers else "their addresses for HOST:PORT and "
        return f"{theirs}the token's file for FILE"

    def _confirm(
        self,
        request: Request,
        form: OverrideForm,
        requested: OverrideRequest,
        error: HTTPException | None = None,
    ) -> Response:
        return _confirm(
            error,
            title="Set this override?",
            effects=setting_effects(self.inputs, requested, self._now()),
            command=setting_command(requested, self._sidecars(request)),
            filled_in=self._filled_in(),
            action="/override",
            fields=form.fields(),
            does="Do it",
        )


def _confirm(error: HTTPException | None, **values: object) -> Response:
    problem = ""
    if error is not None:
        problem = _MISTYPED if error.status_code == 401 else error.detail
    html = page("confirm.html", problem=problem, **values)
    if error is None:
        return _html(html)
    return _html(html, error.status_code, error.headers)


async def _runbooks(problem: str = "", status: int = 200) -> Response:
    # The first one loads the parser for 0.2 s.
    text = problem or await asyncio.to_thread(runbooks.index)
    html = page("runbook.html", title="Runbooks", text=text, names=runbooks.names())
    return _html(html, status)


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(text, status, headers={**_HEADERS, **(headers or {})})


def _number(text: str) -> int:
    """Return the requested page; 1 when it is not a number, or has more than 4,300 digits."""
    try:
        return max(1, min(int(text), _MOST_PAGES))
    except ValueError:
        return 1
