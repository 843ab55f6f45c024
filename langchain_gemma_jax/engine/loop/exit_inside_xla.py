"""The end of a process whose engine is inside a dispatch that takes longer than the end may wait.

A thread inside XLA, compiling or waiting for the device, cannot be interrupted, and while it is there
two things kill the process. The C++ runtime destroys what a compile is using: a segmentation fault, in
half of the runs that were tried. Or the thread comes back to an interpreter that is being taken down,
which ends it by unwinding C++ frames that forbid that: ``std::terminate``, each time (Python 3.14 lets
it sleep instead). So the process is left before the first can happen, with the exit status that it
would have had, and a thread that comes to the second sleeps.

A thread that JAX traces in is in Python, below frames of JAX's C++ which do not forbid to be unwound, but
whose destructors use Python without its lock: a segmentation fault again, in half of the runs on a busy
machine. So the engine's threads that are in Python are put to sleep before it is taken down.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

LAST_RESORT = 10  # seconds after which the process is killed, should its main thread have been put to sleep
ASLEEP_SECONDS = 0.3  # that threads in Python get to fall asleep; one inside XLA does not, and is not waited for


def leave_early(callers: Iterable[int] = ()) -> bool:
    """Have the process left as soon as Python has been taken down. Only while it ends. False: not possible here.

    ``callers``: threads of others, by their ``threading.get_ident()``, that may be inside XLA beside the engine's own.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "on_exit"):
        return False
    # on_exit calls a function with the exit status. _exit takes one, and ends the process at once.
    libc.on_exit(libc._exit, None)  # noqa: SLF001  that is its name
    if sys.version_info < (3, 14):
        with suppress(OSError):  # which jaxlib has loaded; where it is not to be found, nothing of C++ runs
            ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(libc.pause)  # noqa: SLF001
        libc.signal(signal.SIGABRT, libc.pause)  # where some of those frames catch what unwinds them
        libc.signal(signal.SIGALRM, None)  # SIG_DFL
        libc.alarm(LAST_RESORT)
        own = {thread.ident or 0 for thread in threading.enumerate() if thread.name.startswith("gemma-jax")}
        put_to_sleep({*own, *callers} - {threading.get_ident()}, ASLEEP_SECONDS)
    if (tidy := getattr(sys.modules.get("jax._src.api"), "clean_up", None)) is not None:
        atexit.unregister(tidy)  # which JAX does under locks that a thread may have gone to sleep with
    libc.fflush(None)  # _exit does not
    gc.freeze()  # taking Python down collects garbage several times, and most of it is that of a trace
    return True


def put_to_sleep(threads: set[int], seconds: float) -> None:
    """Have threads sleep for ever as soon as they run Python, and wait so long for that. Only while a process ends."""
    libc, asleep = ctypes.CDLL(None), set[int]()

    class Asleep(BaseException):
        """An exception that is made in the thread that is to raise it, and never comes to be raised."""

        def __init__(self) -> None:
            super().__init__()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # else any of them would wake it
            asleep.add(threading.get_ident())
            libc.pause()

    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Asleep))
    until = time.monotonic() + seconds
    while not asleep.issuperset(threads) and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.01)  # for the last one, which has said so and gives up Python's lock with its next step
