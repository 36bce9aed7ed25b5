"""Where the journal lives: an explicit path or URL, the environment, or ``.failwise/`` here."""

import errno
import logging
import os
import re
from pathlib import Path

from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.records import record

_log = logging.getLogger("failwise")

VARIABLE = "FAILWISE_JOURNAL"
MEMORY = ":memory:"
DIRECTORY = ".failwise"
FILE = "journal.db"

_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smbfs",
        "smb2",
        "smb3",
        "ncpfs",
        "afs",
        "ceph",
        "lustre",
        "beegfs",
        "gpfs",
        "glusterfs",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.davfs2",
        "fuse.smbnetfs",
        "fuse.mount-s3",
    }
)
_UNWRITABLE = frozenset(
    {
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENOENT,
        errno.EEXIST,
    }
)


_ENGINES: dict[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "postgresql+psycopg": "postgresql",
    "clickhouse": "clickhouse",
    "clickhouses": "clickhouse",
    "chdb": "chdb",
}


@record
class Target:
    """A place to keep a journal: the engine (``sqlite``, ``postgresql``, ``clickhouse``, ``chdb``, or
    one that was registered), its address (an absolute path, ``":memory:"`` or the
    whole URL), and what may be `shown` of it: the same without secrets."""

    engine: str
    address: str
    shown: str


def locate(place: str | os.PathLike[str] | None) -> Target:
    """Where to write to. Opens and creates nothing.

    `place`: a path, ``":memory:"``, or a URL: ``sqlite:///relative/path``, ``sqlite:////absolute``,
    ``postgresql://user@host/database``, ``clickhouse://user@host:8123/database`` (``clickhouses``
    with TLS), ``chdb:///directory``. It wins over the variable ``FAILWISE_JOURNAL``, that over
    ``.failwise/journal.db`` in the working directory. Raises `UsageError` for another URL, and what
    `resolve` raises.
    """
    chosen = os.fspath(place) if place is not None else os.environ.get(VARIABLE) or None
    if chosen is None or "://" not in chosen:
        path = resolve(chosen)
        return Target("sqlite", path, path)
    scheme, _, rest = chosen.partition("://")
    engine = _ENGINES.get(scheme.lower())
    if engine is None:
        raise UsageError(
            f"journal {scheme}://...: write a path, or a URL that begins with sqlite, postgresql, "
            "clickhouse, clickhouses or chdb"
        )
    if engine == "sqlite":
        path = resolve(rest[1:] if rest not in ("", "/") else MEMORY)
        return Target("sqlite", path, path)
    return Target(engine, chosen, without_secrets(chosen))


CLAIMS_FILE = "claims.db"
CLAIMS_VARIABLE = "FAILWISE_CLAIMS"


def claims_target(records: Target, claims: str | os.PathLike[str] | None) -> Target:
    """Where claims are kept: where `claims` says; with the records; beside ClickHouse where the
    variable ``FAILWISE_CLAIMS`` says, else in ``.failwise/claims.db``.

    Raises `UsageError` where that is an engine that cannot grant one of two at once.
    """
    if claims is None:
        if records.engine not in _RECORDS_ONLY:
            return records
        claims = os.environ.get(CLAIMS_VARIABLE) or None
    if claims is None:
        path = resolve(os.path.join(DIRECTORY, CLAIMS_FILE))
        return Target("sqlite", path, path)
    found = locate(claims)
    if found.engine in _RECORDS_ONLY:
        raise UsageError(
            f"claims={found.shown}: ClickHouse cannot keep claims, because it cannot grant one of "
            "two that come at once; name an SQLite file or a PostgreSQL URL"
        )
    return found


_RECORDS_ONLY = ("clickhouse", "chdb")
_BESIDE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(?:claims|prevented|cluster_names|advice)\b")


def beside(sql: str) -> bool:
    """It is about the tables that change after they were written: they live where claims live."""
    return _BESIDE.search(sql) is not None


def add_engine(scheme: str) -> None:
    """Let URLs of this scheme be places; the engine has its name."""
    _ENGINES[scheme] = scheme


def without_secrets(url: str) -> str:
    """A URL as it may be shown: no password, and no value of a query but those that say nothing."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    front, at, back = rest.rpartition("@")
    if at:
        user, colon, _ = front.partition(":")
        rest = f"{user}:****@{back}" if colon else f"{front}@{back}"
    shown = [
        part if part.partition("=")[0] in _OPEN_OPTIONS else f"{part.partition('=')[0]}=****"
        for part in query.split("&")
        if part
    ]
    return f"{scheme}://{rest}" + ("?" + "&".join(shown) if shown else "")


_OPEN_OPTIONS = frozenset(
    {
        "host",
        "port",
        "dbname",
        "database",
        "user",
        "schema",
        "secure",
        "sslmode",
        "connect_timeout",
        "application_name",
    }
)


def censored(error: BaseException, target: Target) -> str:
    """What an error says, without the secrets of the URL that it may repeat."""
    text = str(error).strip() or type(error).__name__
    if target.address == target.shown:
        return text
    text = text.replace(target.address, target.shown)
    front = target.address.partition("://")[2].partition("?")[0].rpartition("@")[0]
    password = front.partition(":")[2]
    for secret in {password, _unquoted(password)}:
        if secret:
            text = text.replace(secret, "****")
    return text


def _unquoted(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text)


def resolve(path: str | os.PathLike[str] | None) -> str:
    """The place of an SQLite journal, as an absolute path or ``":memory:"``. Opens nothing.

    None is ``.failwise/journal.db`` in the working directory. Raises `ConfigurationError` for a
    network file system, where SQLite's locks do not hold and two processes could both be granted
    one effect.
    """
    chosen = os.fspath(path) if path is not None else None
    if chosen == MEMORY:
        return MEMORY
    place = os.path.abspath(chosen if chosen else os.path.join(DIRECTORY, FILE))
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace")
    except OSError:
        return place  # no such list on this system: nothing can be known
    kind = network_file_system(os.path.realpath(place), mounts)
    if kind is not None:
        raise ConfigurationError(
            f"the journal would lie on a network file system ({kind}), where file locks do not "
            f"hold; set {VARIABLE} (or journal=) to a path on a local disk, or to :memory:",
            file=place,
        )
    return place


def network_file_system(place: str, mounts: str) -> str | None:
    """The type of the network file system that holds `place`, or None for a local one.

    `mounts` has the form of ``/proc/self/mounts``: device, mount point, type, options a line.
    """
    best, kind = "", None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind if kind in _NETWORK else None


def prepare(place: str) -> str:
    """Make directory and file ready to open; gives back `place`, or ``":memory:"`` as a way out.

    The file is created 0600 (SQLite gives its companions the same), a ``.failwise`` directory 0700
    with an ignore file of its own. Where the disk cannot be written, memory takes over with one
    warning. Raises `OSError` for what may heal (a full disk).
    """
    if place == MEMORY:
        return place
    try:
        directory = os.path.dirname(place)
        if not os.path.isdir(directory):
            os.makedirs(directory, 0o700, exist_ok=True)
        if os.path.basename(directory) == DIRECTORY:
            _ignore(directory)
        os.close(os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        if not os.access(directory, os.W_OK):
            raise PermissionError(errno.EACCES, "directory is not writable", directory)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _log.warning(
            "journal: %s cannot be written (%s); keeping it in memory: claims will not survive a "
            "crash. Set %s to a writable path.",
            place,
            error.strerror,
            VARIABLE,
        )
        return MEMORY
    _log.info("journal: %s", place)
    return place


def _ignore(directory: str) -> None:
    path = os.path.join(directory, ".gitignore")
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("*\n")
