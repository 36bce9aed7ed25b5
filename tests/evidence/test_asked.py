"""What was asked: the host of connections of urllib3 that could not be made."""

import warnings

from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection
from urllib3.exceptions import EmptyPoolError, NewConnectionError

from failwise.evidence import from_exception


def test_host_of_a_connection_or_a_pool() -> None:
    """Of the connection where the error has one, else of its pool."""
    connection = HTTPConnection("orders.example", 8443)
    assert from_exception(NewConnectionError(connection, "refused")).host == "orders.example"
    pool = HTTPConnectionPool("orders.example", 8443)
    assert from_exception(EmptyPoolError(pool, "full")).host == "orders.example"


def test_no_deprecated_attribute_is_read() -> None:
    """An error that lost its connection on the way between processes says nothing of a host, and
    nobody is warned of its `pool`."""
    error = NewConnectionError(HTTPConnection("orders.example"), "refused")
    kind, arguments = error.__reduce__()
    copied = kind(*arguments)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert from_exception(copied).host is None
    assert not warned
