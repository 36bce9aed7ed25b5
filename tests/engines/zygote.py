"""A process with the engine imported that forks a fresh child for each order, one a line on its input."""

import gc
import json
import os
import signal
import sys
import traceback

import failwise.guards
import failwise.journal.store
import failwise.runtime.background
import failwise.runtime.drive_sync
import failwise.tools.send  # noqa: F401
from tests.engines.dbos_job import run


def main() -> None:
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
