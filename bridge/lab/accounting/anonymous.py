# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms for the people, accounts and jobs of a site workload.

Rules
    1. Users, groups, accounts, names of jobs and reservations become KIND-HASH, a keyed hash
       (HMAC-SHA-256) of the name. Equal names get equal pseudonyms; without the secret nobody can
       find out by trying names.
    2. The secret is new for each import and forgotten, unless a file keeps it: then later imports
       give the same pseudonyms. Such a file must not be passed on.
    3. Reasons of outages are removed. Names of nodes, partitions, QOS, features and licences stay,
       as do ids, times and amounts.
"""

import hashlib
import hmac
import os
import secrets
from dataclasses import replace
from pathlib import Path

from bridge import files
from bridge.errors import ConfigError
from bridge.lab.accounting.found import AccountingRecords

_BYTES = 32
_DIGITS = 12


def read_or_make_secret(path: Path | None) -> bytes:
    """The secret in a file; a new one, kept there if there was none, or nowhere without a path.

    Raises:
        ConfigError: the file cannot be read or written, or holds something else.
    """
    if path is None:
        return secrets.token_bytes(_BYTES)
    try:
        if path.exists():
            secret = bytes.fromhex(files.read_text(path, 1024).strip())
        else:
            secret = secrets.token_bytes(_BYTES)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "w", encoding="ascii") as file:  # noqa: PTH123 - a descriptor
                file.write(secret.hex() + "\n")
    except OSError as error:
        raise ConfigError("secret", str(error.strerror), file=str(path)) from None
    except ValueError:
        secret = b""
    if len(secret) != _BYTES:
        raise ConfigError(
            "secret", f"does not hold {2 * _BYTES} hexadecimal digits", file=str(path)
        )
    return secret


def pseudonymous(found: AccountingRecords, secret: bytes) -> AccountingRecords:
    """What was found, without names."""

    def name(kind: str, text: str) -> str:
        if not text:
            return ""
        digest = hmac.new(secret, f"{kind}:{text}".encode("utf-8", "replace"), hashlib.sha256)
        return f"{kind}-{digest.hexdigest()[:_DIGITS]}"

    jobs = {
        key: replace(
            job,
            user=name("user", job.user),
            group=name("group", job.group),
            account=name("account", job.account),
            name=name("job", job.name),
            reservation=name("reservation", job.reservation),
        )
        for key, job in found.jobs.items()
    }
    return replace(
        found,
        jobs=jobs,
        outages=[replace(each, why="") for each in found.outages],
        reservations=[
            replace(each, name=name("reservation", each.name)) for each in found.reservations
        ],
    )
