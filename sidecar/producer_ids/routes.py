"""The routes about producer ids: each user's ids, the quotas, and the ids for other sidecars.

Example: ``PUT /v1/quotas/producer-ids/users/alice`` with ``{"producer_ids_rate": 50}`` allows alice
50 new ids per window until a ``DELETE``. It overrides the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from fastapi import FastAPI, Header, Path, Query
from pydantic import AfterValidator
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import NO_STORE, answer, answer_listing, rounded, timestamp
from sidecar.api.change_routes import needs_token
from sidecar.api.changes import Changes, documented_body, json_body
from sidecar.api.documents import NO_PRINCIPAL
from sidecar.api.long_poll import wait_for_any
from sidecar.api.preferences import preferred_wait_s
from sidecar.api.problems import documented
from sidecar.control.board import Board
from sidecar.control.capability import Services
from sidecar.control.persistence import Persistence
from sidecar.kafka.active_producers import ScanResult
from sidecar.peers.exchange import AllocatedIdLog, Peers
from sidecar.producer_ids.active_watch import ActiveIdWatch
from sidecar.producer_ids.documents import (
    ActiveIdsDocument,
    AllocatedIdsDocument,
    IdQuotaCleared,
    IdQuotaDocument,
    IdQuotasDocument,
    IdQuotaSet,
    PeerDocument,
    ProducerIdsDocument,
    RequestLogDocument,
    UserIdsDocument,
)
from sidecar.producer_ids.quota_file import QuotaForm
from sidecar.producer_ids.service import ProducerIdWatch, user_throttles_of
from sidecar.quotas.entities import DEFAULT, LONGEST_USER, Default, user_name
from sidecar.quotas.producer_ids.id_quotas import InForce, quota_of
from sidecar.quotas.producer_ids.user_ids import ProducerIdStatus
from sidecar.requestlog.reader import LogReader
from sidecar.settings.values import IdsCount
from sidecar.throttle.user_throttles import UserThrottle

MOST_QUOTAS: Final = 10_000
"""How many users may have a quota over HTTP; the state file contains all of them."""

_LONGEST_WAIT_S: Final = 30

_User = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_USER,
        description='The principal\'s name without "User:".',
        json_schema_extra=NO_PRINCIPAL,
    ),
    AfterValidator(user_name),
]


class _NameConvertor(PathConvertor):
    """The rest of a path, also with line breaks; Starlette's own converter rejects them."""

    regex = "(?s:.*)"


register_url_convertor("name", _NameConvertor())


@dataclass(frozen=True, slots=True)
class IdParts:
    """The sources of the routes' answers.

    Attributes:
        watch: counts ids.
        allocated: the ids of the broker beside this sidecar, for other sidecars.
        peers: the other sidecars; None if there are none.
        is_enabled: whether a user can be throttled; False if the check interval is PT0S.
        active: counts ids when they write; None if ids count when they are allocated.
        counts: when an id counts.
        user_header: the request header in which a proxy names the user; None to read none.
    """

    watch: ProducerIdWatch
    allocated: AllocatedIdLog
    peers: Peers | None
    is_enabled: bool
    active: ActiveIdWatch | None = None
    counts: IdsCount = "allocated"
    user_header: str | None = None


def add_producer_ids(app: FastAPI, services: Services, parts: IdParts) -> None:
    """Add the routes, which answer from ``parts``."""
    changes = Changes(services.board, services.wall, services.persist, parts.user_header)
    quotas = _Quotas(parts, changes)
    guarded: dict[str, Any] = {"dependencies": [needs_token(services.tokens)]}
    body = documented_body(QuotaForm.model_json_schema())
    _add_reading(app, _Users(services, parts), quotas)
    _add_allocated(app, services.board, parts.allocated)

    @app.put(
        "/v1/quotas/producer-ids/default",
        summary="Set the default producer id quota, for users without their own",
        responses={200: {"model": IdQuotaSet}, **documented(401, 403, 409, 413, 415, 422)},
        openapi_extra=body,
        **guarded,
    )
    async def set_default(request: Request) -> Response:
        """Override the file and the setting. The answer is 409 if the sidecar is disabled."""
        return answer(await quotas.put(DEFAULT, await json_body(request, QuotaForm), request))

    @app.put(
        "/v1/quotas/producer-ids/users/{user:name}",
        summary="Set a user's producer id quota",
        responses={200: {"model": IdQuotaSet}, **documented(401, 403, 409, 413, 415, 422)},
        openapi_extra=body,
        **guarded,
    )
    async def set_user(request: Request, user: _User) -> Response:
        """Override the file. It is 409 if the sidecar is disabled or has too many quotas."""
        return answer(await quotas.put(user, await json_body(request, QuotaForm), request))

    @app.delete(
        "/v1/quotas/producer-ids/default",
        summary="Remove the default quota that was set over the API",
        responses={200: {"model": IdQuotaCleared}, **documented(401, 403, 409)},
        **guarded,
    )
    async def clear_default(request: Request) -> Response:
        """Return to the default of the file or the setting; 200 even if none was set.

        409 while the state file is not read yet, because it may have the quota.
        """
        return answer(await quotas.delete(DEFAULT, request))

    @app.delete(
        "/v1/quotas/producer-ids/users/{user:name}",
        summary="Remove a user's quota that was set over the API",
        responses={200: {"model": IdQuotaCleared}, **documented(401, 403, 409, 422)},
        **guarded,
    )
    async def clear_user(request: Request, user: _User) -> Response:
        """Return to the quota of the file or the default; 200 even if none was set.

        409 while the state file is not read yet, because it may have the quota.
        """
        return answer(await quotas.delete(user, request))


def _add_reading(app: FastAPI, users: "_Users", quotas: "_Quotas") -> None:

    @app.get(
        "/v1/producer-ids",
        summary="The producer ids of each user, and the throttled users",
        responses={200: {"model": ProducerIdsDocument}},
    )
    async def producer_ids() -> Response:
        """Return each user's rate, remaining tokens and throttle time (KIP-936)."""
        return answer_listing(users.before(), "users", users.documents())

    @app.get(
        "/v1/quotas/producer-ids",
        summary="The producer id quotas that apply, with their sources",
        responses={200: {"model": IdQuotasDocument}},
    )
    async def id_quotas() -> Response:
        """Return the default first, then the users by name."""
        return answer_listing({}, "quotas", quotas.documents())


def _add_allocated(app: FastAPI, board: Board, log: AllocatedIdLog) -> None:

    @app.get(
        "/v1/producer-ids/allocated",
        summary="The producer ids that this sidecar's broker allocated, for other sidecars",
        responses={200: {"model": AllocatedIdsDocument}, **documented(422)},
    )
    async def allocated(
        request: Request,
        after: Annotated[
            str | None, Query(max_length=100, description="``next`` of the answer before.")
        ] = None,
        last_s: Annotated[
            float,
            Query(
                ge=0.0,
                allow_inf_nan=False,
                description="Without ``after``: how many of the last seconds to return.",
            ),
        ] = 0.0,
        prefer: Annotated[
            str,
            Header(
                description=f"wait=SECONDS (RFC 7240): wait for an id, {_LONGEST_WAIT_S} s at most."
            ),
        ] = "",
    ) -> Response:
        """Return the ids after a position; without one, those of the last ``last_s`` seconds.

        A wait also ends when the factor changes. With too many waiting requests it ends at once.
        """
        wait_s = min(preferred_wait_s(prefer) or 0, _LONGEST_WAIT_S)
        if wait_s:
            change = board.wait_for_change(board.snapshot.generation, wait_s)
            await wait_for_any(request, log.wait_for_more(after), change)
        page = msgspec.json.encode(log.page(after, last_s))
        return Response(page, headers=NO_STORE, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Users:
    services: Services
    parts: IdParts

    def before(self) -> dict[str, object]:
        """Return everything except the users."""
        watch, peers, active = self.parts.watch, self.parts.peers, self.parts.active
        log = self.services.request_log
        settings, dropped = watch.settings, watch.dropped
        return {
            "window_num": settings.window_num,
            "window_size_seconds": settings.window_size_s,
            "filter_bytes": watch.filter_bytes,
            "dropped": dropped.of_known_users + dropped.of_unknown_users,
            "counts": self.parts.counts,
            "active": None if active is None else _active_document(active),
            "request_log": None if log is None else _log_document(log),
            "peers": [
                PeerDocument(str(peer.address), peer.ids, peer.lost, peer.failure)
                for peer in (peers.peers if peers is not None else ())
            ],
        }

    def documents(self) -> Iterator[UserIdsDocument]:
        """Return every user that is known or throttled."""
        known = {status.user: status for status in self.parts.watch.statuses()}
        throttles = user_throttles_of(self.services.board)
        for user in sorted({*known, *throttles}):
            yield self._document(user, known.get(user), throttles.get(user))

    def _document(
        self, user: str, status: ProducerIdStatus | None, throttle: UserThrottle | None
    ) -> UserIdsDocument:
        board, wall = self.services.board, self.services.wall
        in_force = board.snapshot.decision.user_throttles.get(user)
        limit = self.parts.watch.quota_of(user).quota.producer_ids_rate
        return UserIdsDocument(
            user=user,
            rate=0.0 if status is None else round(status.rate, 3),
            producer_ids_rate=limit,
            tokens=None if status is None else rounded(status.tokens, 3),
            throttle_time_ms=(
                0 if throttle is None else max(0, round((throttle.ends_at - board.now()) * 1000))
            ),
            throttled_since=timestamp(wall, throttle.since if throttle else None),
            throttled_until=timestamp(wall, throttle.ends_at if throttle else None),
            reason=throttle.reason if throttle else None,
            throttled_by=in_force.enforcer if in_force else None,
        )


def _active_document(active: ActiveIdWatch) -> ActiveIdsDocument:
    scan = active.last_scan or ScanResult()
    failure = active.failure or next(iter(scan.failures.values()), None)
    is_whole = active.last_scan is not None and not scan.not_read
    return ActiveIdsDocument(
        is_scanning=active.is_scanning,
        is_complete=not active.is_scanning or is_whole,
        failure=None if failure is None else failure.message,
        partitions=scan.partitions,
        partitions_not_read=scan.not_read,
        producers=scan.producers,
        active=active.active,
        unknown_owner=active.ids.unknown,
    )


def _log_document(log: LogReader) -> RequestLogDocument:
    counts = log.counts
    return RequestLogDocument(
        str(log.path),
        log.exists,
        counts.lines,
        {str(kind): count for kind, count in log.usage.rejected.items()},
        log.usage.is_unreadable,
        log.behind,
        counts.dropped_lines,
        counts.dropped_bytes,
    )


@dataclass(frozen=True, slots=True)
class _Quotas:
    parts: IdParts
    changes: Changes

    def documents(self) -> Iterator[IdQuotaDocument]:
        """Return all current quotas."""
        quotas = self.parts.watch.quotas
        yield _document(DEFAULT, quotas[DEFAULT])
        for user in sorted(name for name in quotas if isinstance(name, str)):
            yield _document(user, quotas[user])

    async def put(self, user: str | Default, form: QuotaForm, request: Request) -> IdQuotaSet:
        """Set a quota.

        Raises:
            HTTPException: 409 if the sidecar is disabled or has too many quotas.
        """
        if not self.parts.is_enabled:
            raise HTTPException(
                409, "The check interval is PT0S: nothing is polled and nobody is throttled."
            )
        before = self.parts.watch.put_quotas
        if user not in before and len(before) >= MOST_QUOTAS:
            raise HTTPException(409, f"There are {MOST_QUOTAS} quotas: put more into the file.")
        operation = self.changes.operation(request, f"set {_of(user)}: {form}")
        self.parts.watch.put({**before, user: form.quota()}, operation)
        stored = await self.changes.persist()
        return IdQuotaSet(self._in_force(user), stored is Persistence.WRITTEN, stored.value)

    async def delete(self, user: str | Default, request: Request) -> IdQuotaCleared:
        """Remove a quota.

        Raises:
            HTTPException: 409 if the state file, which may have the quota, is not read yet.
        """
        if unread := self.changes.board.unread:
            raise HTTPException(409, f"{unread[0].upper()}{unread[1:]}. Try again later.")
        before = self.parts.watch.put_quotas
        if user in before:
            operation = self.changes.operation(request, f"removed {_of(user)}")
            left = {name: quota for name, quota in before.items() if name != user}
            self.parts.watch.put(left, operation)
        stored = await self.changes.persist()
        return IdQuotaCleared(
            user in before, self._in_force(user), stored is Persistence.WRITTEN, stored.value
        )

    def _in_force(self, user: str | Default) -> IdQuotaDocument:
        quotas = self.parts.watch.quotas
        in_force = quotas[DEFAULT] if isinstance(user, Default) else quota_of(quotas, user)
        return _document(user, in_force)


def _of(user: str | Default) -> str:
    # A name may have line breaks, and this is a line of the log.
    whose = "users without their own" if isinstance(user, Default) else f"user {user!r}"
    return f"the producer id quota of {whose}"


def _document(user: str | Default, in_force: InForce) -> IdQuotaDocument:
    return IdQuotaDocument(
        None if isinstance(user, Default) else user,
        in_force.quota.producer_ids_rate,
        in_force.quota.throttled_request_percentage,
        in_force.origin.value,
    )
