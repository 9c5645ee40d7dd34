"""A command that is asked to stop at a moment where no exception can be raised."""

import subprocess
import sys

CODE = """
import signal, time, weakref
from vademecum.errors import Interrupted
from vademecum.surfaces.cli.run import stoppable

class Thing: ...

try:
    with stoppable():
        thing = Thing()
        watched = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
        del thing  # what its callback raises is ignored
        time.sleep(60)
    print("slept")
except Interrupted:
    print("interrupted")
"""


def test_a_signal_in_a_callback_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("interrupted", "")
