"""How a process ends whose engine is in the middle of a dispatch that takes longer than anybody wants to wait.

A thread inside XLA, compiling or waiting for the device, cannot be interrupted, and while it is there
two things kill the process. The C++ runtime destroys what a compile is using: a segmentation fault, in
half of the runs that were tried. Or the thread comes back to an interpreter that is being taken down,
which ends it by unwinding C++ frames that forbid that: ``std::terminate``, each time (Python 3.14 lets
it sleep instead). So the process is left before the first can happen, with the exit status that it
would have had, and a thread that comes to the second sleeps.
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys

LAST_RESORT = 10  # seconds after which the process is killed, should its main thread have been put to sleep


def leave_early() -> bool:
    """Have the process left as soon as Python has been taken down. Only while it ends. False: not possible here."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "on_exit"):
        return False
    # on_exit calls a function with the exit status. _exit takes one, and ends the process at once.
    libc.on_exit(libc._exit, None)  # noqa: SLF001  that is its name
    if sys.version_info < (3, 14):
        ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)  # noqa: SLF001  which jaxlib has loaded
        libc.signal(signal.SIGABRT, libc.pause)  # where some of those frames catch what unwinds them
        libc.signal(signal.SIGALRM, None)  # SIG_DFL
        libc.alarm(LAST_RESORT)
    libc.fflush(None)  # _exit does not
    gc.freeze()  # taking Python down collects garbage several times, and most of it is that of a trace
    return True
