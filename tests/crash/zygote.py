"""A process with everything imported that forks a fresh child for each order: hundreds of lives a minute.

Reads one order a line on standard input, answers with one line: how the child ended. It has no
threads, opens no journal, and so gives its children nothing but loaded modules.
"""

import gc
import json
import os
import signal
import sys
import traceback

import httpx

# What the first call of a process would import.
import failwise.guards
import failwise.journal.store
import failwise.runtime.background
import failwise.runtime.drive_sync
import failwise.tools.send  # noqa: F401
from failwise.arguments import ArgumentReader
from failwise.classify import Classifier
from failwise.evidence import from_exception, from_response
from failwise.policy import load
from failwise.redaction import default
from tests.crash.process import run


def warm() -> None:
    """Load what the first calls and failures of every child would load."""
    request = httpx.Request("POST", "http://127.0.0.1/plain")
    page = {"content-type": "text/html"}
    ends = [
        from_response(httpx.Response(status, headers=page, text="<h1>no</h1>", request=request))
        for status in (500, 429)
    ]
    reset = httpx.ReadError("[Errno 104] Connection reset by peer", request=request)
    reset.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    for evidence in (*ends, from_exception(reset)):
        failure = Classifier().classify(evidence, tool="plain")
        assert failure is not None
        failure.to_dict()
    ArgumentReader({"type": "object"}).read({"order": "1"})
    load("default")
    default().data({"order": "1"})
    default().text("order 1")


def main() -> None:
    warm()
    gc.freeze()  # so that a child's collector does not copy what it shares with this process
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                run(order)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        ended = "killed" if killed else "done" if status == 0 else f"failed: {status}"
        print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    main()
