"""Files that no context can be made of, by their messages."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from sidecar.errors import SettingsError
from sidecar.tls import TlsFiles, client_context, server_context


def test_files_that_can_not_be_used(tmp_path: Path) -> None:
    """The message names the files and the reason, and shows nothing of a key."""
    authority = trustme.CA()
    mine, other = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    certificate, key, text = (tmp_path / name for name in ("tls.crt", "tls.key", "text"))
    mine.cert_chain_pems[0].write_to_path(str(certificate))
    other.private_key_pem.write_to_path(str(key))
    text.write_text("no PEM")

    def problem(make: Callable[[TlsFiles], object], files: TlsFiles) -> str:
        with pytest.raises(SettingsError) as raised:
            make(files)
        return str(raised.value)

    both = f"the certificate file {certificate} or its key {key} can't be used: "
    mismatch = "KEY_VALUES_MISMATCH: the key does not belong to the certificate"
    pair = TlsFiles(certificate=certificate, key=key)
    assert both + mismatch == problem(server_context, pair)
    assert both + mismatch == problem(client_context, pair)
    gone = TlsFiles(certificate=tmp_path / "gone")
    assert problem(server_context, gone).endswith(
        "its key can't be used: No such file or directory"
    )
    mine.private_key_pem.write_to_path(str(key))
    no_ca = f"the CA file {text} can't be used: it has no certificate"
    assert problem(client_context, TlsFiles(text)).startswith(no_ca)
    assert problem(server_context, TlsFiles(None, certificate, key, text)).startswith(no_ca)
