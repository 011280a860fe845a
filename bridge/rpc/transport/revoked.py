# SPDX-License-Identifier: Apache-2.0
"""Certificates, and the list of revoked ones.

Rules
    1. The list is a file: a line names a certificate by its serial number or by its SHA-256
       fingerprint, hexadecimal, as openssl prints them (`serial=`, `sha256 Fingerprint=`, colons).
       `#` begins a comment.
    2. It is read again whenever it has changed. If it cannot be read, or has an invalid line, the
       last list stays in force.
"""

import hashlib
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge import files
from bridge.errors import ConfigError

_log = logging.getLogger(__name__)
_MAX_NAMES: Final = 100
_SHOWN: Final = 20
_FINGERPRINT: Final = 64
_LONGEST_SERIAL: Final = 42


@dataclass(frozen=True)
class Certificate:
    """The certificate of the other side.

    Attributes:
        names: common names and alternative names.
        serial: number, as its authority counts.
        fingerprint: SHA-256, 64 hexadecimal digits.
    """

    names: frozenset[str]
    serial: int
    fingerprint: str


def certificate_of(tls: ssl.SSLSocket) -> Certificate:
    """The certificate of the other side, after the handshake."""
    found = tls.getpeercert() or {}
    subject: Iterable[object] = found.get("subject", ())
    pairs = [pair for part in subject for pair in part]  # type: ignore[attr-defined]
    names = {str(value) for key, value in pairs if key == "commonName"}
    alternative: Iterable[tuple[str, object]] = found.get("subjectAltName", ())  # type: ignore[assignment]
    names |= {str(value) for _, value in list(alternative)[:_MAX_NAMES]}
    raw = tls.getpeercert(binary_form=True) or b""
    return Certificate(
        frozenset(names),
        int(str(found.get("serialNumber", "0")), 16),
        hashlib.sha256(raw).hexdigest(),
    )


@dataclass(frozen=True)
class RevokedChange:
    """Another list, or one that was refused.

    Attributes:
        uid: the owner of the file; -1: there is none.
        before, after: how many the lists name, and which the other one does not.
        problem: why the list is not in force; empty: it is.
    """

    path: Path
    uid: int
    before: str
    after: str
    problem: str


LogRevoked = Callable[[RevokedChange], None]


def log_nothing(change: RevokedChange) -> None:
    del change


class Revoked:
    """The list; used by one thread."""

    def __init__(self, path: Path | None, key: str, log: LogRevoked = log_nothing) -> None:
        """Reads it.

        Args:
            path: the path of the file; None: nothing is revoked.
            key: the key of the setting, for messages.
            log: takes what changes later.

        Raises:
            ConfigError: it cannot be read, or has a line that names no certificate.
        """
        self._path, self._key, self._log = path, key, log
        self._seen: tuple[int, ...] | None = None
        self._entries: frozenset[int | str] = frozenset()
        if path is not None:
            self._seen = _print(path)
            self._entries = self._read(path)

    def __contains__(self, certificate: object) -> bool:
        return isinstance(certificate, Certificate) and not self._entries.isdisjoint(
            (certificate.serial, certificate.fingerprint)
        )

    def __bool__(self) -> bool:
        return bool(self._entries)

    def refresh(self) -> None:
        """Reads it again if it has changed."""
        if self._path is None:
            return
        seen = _print(self._path)
        if seen == self._seen:
            return
        self._seen = seen
        before = self._entries
        try:
            self._entries = self._read(self._path)
        except ConfigError as error:
            _log.error("the list of revoked certificates is unchanged: %s", error)
            kept = _shown(before, before)
            self._log(RevokedChange(self._path, _uid(self._path), kept, "", str(error)))
            return
        if (found := self._entries) != before:
            was, now = _shown(before, found), _shown(found, before)
            self._log(RevokedChange(self._path, _uid(self._path), was, now, ""))
        _log.info("%s names %d revoked certificates", self._path, len(self._entries))

    def _read(self, path: Path) -> frozenset[int | str]:
        try:
            text = files.read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not a text file"
            raise ConfigError(self._key, f"cannot read {path}: {why}") from error
        found: set[int | str] = set()
        for number, line in enumerate(text.splitlines(), 1):
            word = line.partition("#")[0].rpartition("=")[2].replace(":", "").strip().lower()
            if not word:
                continue
            if set(word) - set("0123456789abcdef") or (
                len(word) != _FINGERPRINT and len(word) > _LONGEST_SERIAL
            ):
                problem = (
                    f"{path}, line {number}: neither a serial number nor a SHA-256 fingerprint"
                )
                raise ConfigError(self._key, problem)
            found.add(word if len(word) == _FINGERPRINT else int(word, 16))
        return frozenset(found)


def _uid(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError:
        return -1


def _shown(entries: frozenset[int | str], others: frozenset[int | str]) -> str:
    """The number of certificates, and the first of those that others lack."""
    apart = entries - others
    words = sorted(f"{entry:x}" if isinstance(entry, int) else entry for entry in apart)
    which = f", of these alone {', '.join(words[:_SHOWN])}" if words else ""
    return f"certificates: {len(entries)}{which}"


def _print(path: Path) -> tuple[int, ...] | None:
    """Changes with the file; None: there is none."""
    try:
        of = path.stat()
    except OSError:
        return None
    return of.st_mtime_ns, of.st_ctime_ns, of.st_size, of.st_ino
