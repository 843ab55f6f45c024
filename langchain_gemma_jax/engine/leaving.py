"""How a process ends whose engine is in the middle of a dispatch that takes longer than anybody wants to wait.

A thread inside XLA, compiling or waiting for the device, cannot be interrupted, and while it is there
two things kill the process: the thread comes back to an interpreter that is being taken down, which
ends it by unwinding C++ frames that forbid it (``abort``; Python 3.14 lets it sleep instead); or the
C++ runtime destroys what a compile is using (a segmentation fault in half of the runs that were
tried). So the process is left before the second can happen, with the exit status that it would have
had, and a thread that comes to the first is put to sleep.
"""

from __future__ import annotations

import ctypes
import signal
import sys

LAST_RESORT = 10  # seconds after which the process is ended, should its main thread be put to sleep


def leave_early() -> bool:
    """Have the process left as soon as Python has been taken down. Only while it ends. False: not possible here."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "on_exit"):
        return False
    # on_exit calls a function with the exit status. _exit takes one, and ends the process at once.
    libc.on_exit(libc._exit, None)  # noqa: SLF001  that is its name
    if sys.version_info < (3, 14):
        libc.signal(signal.SIGABRT, libc.pause)
        libc.signal(signal.SIGALRM, ctypes.c_void_p(int(signal.SIG_DFL)))
        libc.alarm(LAST_RESORT)
    libc.fflush(None)  # _exit does not
    return True
