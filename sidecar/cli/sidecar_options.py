"""Options and output of the commands that call sidecars over HTTP.

The exit code is 0 only if every sidecar did as requested.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from sidecar.api.bearer_token import read_token as token_in
from sidecar.cli.sidecar_client import (
    DEFAULT_PORT,
    Address,
    Answer,
    Request,
    parse_address,
    request_all,
)
from sidecar.formats.gathered_options import read_by
from sidecar.tls import CERTIFICATE, TlsFiles

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings.
    from sidecar.settings import Settings

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not listened on, but replaced
"""A sidecar that listens on all addresses is called on loopback."""

_LOOPBACK: Final = ("127.0.0.1", "::1")

_UNWRITTEN: Final = {
    "pending": "applies; not written to the state file yet",
    "failed": "applies; the state file can't be written, so a restart undoes it",
}
"""The answer's ``state_file`` -> the sentence about a change that is not on disk."""

Cells = Callable[[Mapping[str, object]], Sequence[str]]
"""Makes the cells of a sidecar's row after the first one from the documents of its answer."""


def _addresses(value: str) -> tuple[Address, ...]:
    """A comma-separated list of sidecars; each is used once."""
    texts = [text.strip() for text in value.split(",")]
    addresses = tuple(dict.fromkeys(parse_address(text) for text in texts if text))
    if not addresses:
        raise ValueError("no sidecar is named")
    return addresses


def sidecars_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Give a command ``sidecars: tuple[Address, ...]`` and ``as_json: bool``.

    The addresses have the files of the options for https.
    """
    sidecars = click.option(
        "--sidecars",
        callback=read_by(_addresses, click.BadParameter, ValueError),
        metavar="URL[,URL...]",
        default=own_address,
        show_default=f"SIDECAR_HTTP_LISTEN, or 127.0.0.1:{DEFAULT_PORT}",
        help="The sidecars to call, all at once, separated by commas: each a host:port or a URL.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
    files = [
        _file("--ca-file", "SIDECAR_HTTP_SSL_CA_FILE", "The CA certificates to trust with https."),
        _file("--certificate-file", CERTIFICATE, "This client's certificate, for mutual TLS."),
        _file("--key-file", "SIDECAR_HTTP_SSL_KEY_FILE", "The key of that certificate."),
    ]

    @wraps(function)
    def with_files(*args: Any, **kwargs: Any) -> _R:  # noqa: ANN401 - the command's
        names = ("ca_file", "certificate_file", "key_file")
        ca, certificate, key = (kwargs.pop(name) for name in names)
        tls = TlsFiles(ca, certificate, key)
        kwargs["sidecars"] = tuple(replace(address, tls=tls) for address in kwargs["sidecars"])
        return function(*args, **kwargs)

    command: Callable[..., _R] = as_json(with_files)
    for option in reversed(files):
        command = option(command)
    return sidecars(command)


def token_option(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Give a command ``token_file: Path | None``."""
    text = "The file with the bearer token that changes need."
    return _file("--token-file", "SIDECAR_TOKEN_FILE", text)(function)


def _file(name: str, variable: str, text: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    return click.option(
        name,
        type=click.Path(path_type=Path),
        envvar=variable,
        show_envvar=True,
        metavar="FILE",
        help=text,
    )


def sidecars_of(settings: "Settings", sidecars: tuple[Address, ...]) -> tuple[Address, ...]:
    """Return the sidecars of --sidecars. Without it, the one that runs with these settings.

    The environment alone is not enough, because the settings may be in a file.
    """
    context = click.get_current_context()
    is_given = context.get_parameter_source("sidecars") is not ParameterSource.DEFAULT
    # With port 0, the sidecar has taken any free one.
    if is_given or not settings.http_listen.port:
        return sidecars
    key, certificate = settings.http_ssl_key_file, settings.http_ssl_certificate_file
    listen = {"SIDECAR_HTTP_LISTEN": str(settings.http_listen), CERTIFICATE: str(certificate or "")}
    try:
        own = parse_address(own_address(listen))
    except ValueError as error:
        # The settings take more zones of an IPv6 address than a URL can have.
        raise click.BadParameter(str(error)) from error
    tls = sidecars[0].tls
    if tls.certificate is None:
        tls = replace(tls, certificate=certificate, key=key)
    return (replace(own, tls=replace(tls, ca=tls.ca or settings.http_ssl_ca_file)),)


def own_address(environ: Mapping[str, str] = os.environ) -> str:
    """Return the address of the sidecar that runs with this environment.

    With TLS, a loopback address is called localhost, because certificates rarely have its number.
    """
    listen = environ.get("SIDECAR_HTTP_LISTEN", "").strip() or f"127.0.0.1:{DEFAULT_PORT}"
    host, _, port = listen.rpartition(":")
    bare = host.strip("[]")
    bare, scheme = _ANY.get(bare, bare), ""
    if environ.get(CERTIFICATE):
        bare, scheme = "localhost" if bare in _LOOPBACK else bare, "https://"
    return f"{scheme}[{bare}]:{port}" if ":" in bare else f"{scheme}{bare}:{port}"


def change(request: Request, sidecars: Sequence[Address], token_file: Path | None) -> list[Answer]:
    """Send a change to every sidecar, with the token.

    Raises:
        SettingsError: the token can't be read.
    """
    if token_file is None:
        return request_all(sidecars, [request])
    token = token_in(token_file)
    for address in sidecars:
        if address.exposes:
            click.echo(
                f"Warning: the token is sent to {address} unencrypted: use https, or run this "
                "beside the sidecar.",
                err=True,
            )
    return request_all(sidecars, [request], token)


def merged(answer: Answer) -> dict[str, object]:
    """Merge all documents of an answer."""
    document: dict[str, object] = {}
    for part in answer.documents:
        document |= part
    return document


def report(
    answers: Sequence[Answer],
    columns: Sequence[str],
    cells: Cells,
    as_json: bool,
    **more: object,
) -> None:
    """Print every sidecar's answer.

    The ``columns`` are the headings of ``cells``. JSON also has the fields of ``more``.
    """
    if hint := _where(answers):
        click.echo(hint, err=True)
    if as_json:
        sidecars = [
            {
                "sidecar": str(answer.address),
                "ok": answer.problem is None,
                "problem": answer.problem,
                "answer": merged(answer) if answer.problem is None else None,
            }
            for answer in answers
        ]
        click.echo(json.dumps({"sidecars": sidecars, **more}, indent=2))
        return
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows, bad = [], []
    for number, answer in enumerate(answers):
        if answer.problem is None:
            row = cells(merged(answer))
        else:
            bad.append(number)
            row = [*[""] * (len(columns) - 1), answer.problem]
        rows.append([str(answer.address), *row])
    print_rows(["Sidecar", *columns], rows, bad)


def _where(answers: Sequence[Answer]) -> str:
    """Return a hint about --sidecars if it was not set and no sidecar answered."""
    source = click.get_current_context().get_parameter_source("sidecars")
    if source is not ParameterSource.DEFAULT or any(answer.reached for answer in answers):
        return ""
    return (
        f"No sidecar answers at {answers[0].address}. Name their addresses: "
        "--sidecars b1:7070,b2:7070,b3:7070"
    )


def exit_code(answers: Sequence[Answer]) -> int:
    """Return 0 only if every sidecar did as requested."""
    return 0 if all(answer.problem is None for answer in answers) else 1


def persistence(document: Mapping[str, object]) -> str:
    """Say in words whether the change outlasts a restart. It applies in any case."""
    if document.get("persisted") is True:
        return "a restart retains it"
    return _UNWRITTEN.get(str(document.get("state_file")), "a restart forgets it")
