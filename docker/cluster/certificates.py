# SPDX-License-Identifier: Apache-2.0
"""An authority and certificates of one cluster alone, for the agents of its nodes."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster.engine import Trouble

FOLDER = "schedbridge/agents"
"""In /etc/slurm of every container."""
SERVICE, AGENT = "service", "schedbridge-agent"
"""The names in the certificates: the service's host, and what the service expects of agents."""
_DAYS = "365"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

File = tuple[str, bytes, int, str]
"""Name in /etc/slurm, content, mode, owner."""


def make() -> list[File]:
    """New certificates; the keys can be read by their owners only.

    Raises:
        Trouble: there is no openssl.
    """
    if shutil.which("openssl") is None:
        raise Trouble("--agents needs openssl: apt-get install openssl")
    with tempfile.TemporaryDirectory(prefix="schedbridge-") as name:
        folder = Path(name)
        _openssl(folder, "req", "-x509", *_KEY, "-subj", "/CN=schedbridge", "-days", _DAYS,
                 "-keyout", "ca.key", "-out", "ca.crt")  # fmt: skip
        files = [(f"{FOLDER}/ca.crt", (folder / "ca.crt").read_bytes(), 0o644, "root")]
        for who, owner in ((SERVICE, "slurm"), (AGENT, "root")):
            _sign(folder, who)
            for end, mode in (("crt", 0o644), ("key", 0o600)):
                content = (folder / f"{who}.{end}").read_bytes()
                files.append((f"{FOLDER}/{who}.{end}", content, mode, owner))
    return files


def _sign(folder: Path, who: str) -> None:
    _openssl(folder, "req", *_KEY, "-subj", f"/CN={who}", "-keyout", f"{who}.key",
             "-out", f"{who}.csr")  # fmt: skip
    (folder / "ext").write_text(f"subjectAltName=DNS:{who}\n", encoding="ascii")
    _openssl(folder, "x509", "-req", "-in", f"{who}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
             "-CAcreateserial", "-days", _DAYS, "-extfile", "ext",
             "-out", f"{who}.crt")  # fmt: skip


def _openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, check=False, capture_output=True)
    if done.returncode != 0:
        raise Trouble("openssl failed", done.stderr.decode(errors="replace"))


def service_section() -> str:
    """What the service's configuration says of agents."""
    return (
        "agents:\n"
        "  address: 0.0.0.0:9619\n"
        f"  ca: /etc/slurm/{FOLDER}/ca.crt\n"
        f"  cert: /etc/slurm/{FOLDER}/{SERVICE}.crt\n"
        f"  key: /etc/slurm/{FOLDER}/{SERVICE}.key\n"
    )
