"""What a tool meets without any client package: processes, files, SQLite, urllib3 by itself."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import urllib3

from failwise.classify import classify_exception
from failwise.faults import Fault, FaultServer


def verdict(action: Callable[[], Any]) -> tuple[str, str]:
    """Code and effect of what `action` raises."""
    with pytest.raises(Exception) as raised:
        action()
    failure = classify_exception(raised.value)
    return failure.code, failure.effect.value


def test_processes(tmp_path: Path) -> None:
    """An exit code, a time limit, a program that is not there, one that may not be run."""
    python = sys.executable
    assert verdict(
        lambda: subprocess.run([python, "-c", "raise SystemExit(3)"], check=True)
    ) == ("tool.process_failed", "unknown")  # fmt: skip
    code, effect = verdict(
        lambda: subprocess.run([python, "-c", "import time; time.sleep(9)"], timeout=0.3)  # noqa: PLW1510
    )
    assert code in ("network.timeout", "tool.process_failed")
    assert effect == "unknown"
    code, effect = verdict(lambda: subprocess.run(["no-such-program"], check=True))
    assert code in ("tool.missing_dependency", "tool.file_not_found")
    assert effect == "not_sent"
    plain = tmp_path / "plain"
    plain.write_text("no program")
    plain.chmod(0o644)
    assert verdict(lambda: subprocess.run([str(plain)], check=True)) == (
        "tool.local_permission",
        "not_sent",
    )


def test_files(tmp_path: Path) -> None:
    """Missing, a folder, one that is there already, bytes that are no text."""
    assert verdict((tmp_path / "none").open) == ("tool.file_not_found", "not_sent")
    assert verdict(tmp_path.open)[0] == "tool.file_not_found"
    code, _ = verdict(lambda: os.mkdir(tmp_path))
    assert code in ("tool.file_not_found", "tool.exception", "business.already_exists")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xc4")
    assert verdict(lambda: (tmp_path / "bytes").read_text("utf-8"))[0] == "parsing.encoding"


def test_sqlite(tmp_path: Path) -> None:
    """A lock, constraints, a table that is not there, broken SQL, a file that is no database."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as one:
        one.execute("create table orders (id integer primary key, sku text not null)")
        one.execute("insert into orders values (1, 'A-1')")
    one.execute("begin immediate")
    other = sqlite3.connect(path, timeout=0.05)
    code, effect = verdict(lambda: other.execute("insert into orders values (2, 'A-2')"))
    assert code in ("business.locked", "server.unavailable", "server.overloaded")
    assert effect == "rejected"
    one.rollback()
    assert verdict(lambda: other.execute("insert into orders values (1, 'A-1')")) == (
        "business.already_exists",
        "rejected",
    )
    assert verdict(lambda: other.execute("insert into orders values (3, null)"))[0] in (
        "invalid_request.missing_parameter",
        "invalid_request.parameter",
    )
    assert verdict(lambda: other.execute("select * from nothing"))[0].startswith("invalid_request")
    assert verdict(lambda: other.execute("selec 1"))[0].startswith("invalid_request")
    other.close()
    one.close()
    (tmp_path / "text").write_text("this is no database, whatever its name says" * 50)
    broken = sqlite3.connect(tmp_path / "text")
    assert verdict(lambda: broken.execute("select 1 from orders"))[0].startswith(
        ("tool.", "parsing.", "server.", "invalid_request.")
    )
    broken.close()


def test_urllib3() -> None:
    """Refused, silent, cut off, a page that redirects for ever."""
    with FaultServer() as server, urllib3.PoolManager(timeout=0.3, retries=False) as pool:
        server.route("GET", "/silent", Fault.silent())
        server.route("GET", "/reset", Fault.reset())
        assert verdict(lambda: pool.request("GET", server.refused_url)) == (
            "network.connect_refused",
            "not_sent",
        )
        assert verdict(lambda: pool.request("GET", server.url("/silent"))) == (
            "network.read_timeout",
            "unknown",
        )
        assert verdict(lambda: pool.request("GET", server.url("/reset"))) == (
            "network.connection_reset",
            "unknown",
        )
        assert (
            verdict(lambda: pool.request("GET", server.tls("expired")))[0]
            == "security.unknown_issuer"
        )
