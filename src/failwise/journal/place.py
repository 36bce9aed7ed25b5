"""Where the journal lives: an explicit path, the environment, or ``.failwise/`` here."""

import errno
import logging
import os
from pathlib import Path

from failwise.vocabulary.errors import ConfigurationError, UsageError

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


def resolve(path: str | os.PathLike[str] | None) -> str:
    """The place to write to, as an absolute path or ``":memory:"``. Opens and creates nothing.

    An explicit path wins over the variable ``FAILWISE_JOURNAL``, that over ``.failwise/journal.db``
    in the working directory. Raises `ConfigurationError` for a network file system, where SQLite's
    locks do not hold and two processes could both be granted one effect.
    """
    chosen = os.fspath(path) if path is not None else os.environ.get(VARIABLE) or None
    if chosen == MEMORY:
        return MEMORY
    if chosen is not None and "://" in chosen:
        raise UsageError(
            f"journal {chosen.partition('://')[0]}://...: this journal is an SQLite file; give a path"
        )
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
