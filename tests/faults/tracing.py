"""Stop a child process at any of its system calls: kill it there, or make the call fail.

Linux's ptrace by way of ctypes, on x86-64: the numbers of system calls and the layout of registers
are the processor's own. A seccomp filter in the child picks the calls at which it stops, so that
all others run at full speed. Its first thread is followed: the others make none of these calls.
The child is a fork: what it runs has been imported already.
"""

import ctypes
import errno
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from faults.children import fork, run_in_child

_TRACEME, _CONTINUE, _CONTINUE_TO_CALL = 0, 7, 24
_GETREGS, _SETREGS, _SETOPTIONS = 12, 13, 0x4200
_SYSGOOD, _TRACE_SECCOMP, _EXITKILL = 1, 1 << 7, 1 << 20
_SECCOMP_STOP, _CALL_STOP = signal.SIGTRAP | 7 << 8, signal.SIGTRAP | 0x80
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD_NUMBER, _IF_EQUAL, _ANSWER = (0x20, 0, 0, 0), 0x15, 0x06
_STOP, _ALLOW = 0x7FF00000, 0x7FFF0000

CREATE = os.O_CREAT
CALLS = {
    1: "write", 18: "pwrite64", 20: "writev", 74: "fsync", 75: "fdatasync", 76: "truncate",
    77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 86: "link", 87: "unlink",
    88: "symlink", 90: "chmod", 91: "fchmod", 257: "openat", 258: "mkdirat", 263: "unlinkat",
    264: "renameat", 268: "fchmodat", 280: "utimensat", 285: "fallocate", 316: "renameat2",
    40: "sendfile", 326: "copy_file_range",
}  # fmt: skip
"""The calls that change what is on the disk. Between two of them nothing on it changes."""

GROWING = {"write", "pwrite64", "writev", "fallocate", "sendfile", "copy_file_range", "mkdir"}
"""Those of them that need room."""


_NAMES = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs",
    "gs",
]  # fmt: skip


class _Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in _NAMES]


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_ushort),
        ("then", ctypes.c_ubyte),
        ("otherwise", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("start", ctypes.POINTER(_Instruction))]


@dataclass(frozen=True)
class Call:
    """One system call that is about to be made."""

    number: int  # counted from 0 among the calls of `CALLS`
    name: str


Verdict = Callable[[Call], "int | None"]
"""What is to happen at a call: None lets it go on, -1 kills the process, an errno fails it."""

KILL = -1


def unavailable() -> str | None:
    """Why processes can't be traced here, or None."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return "needs Linux on x86-64"
    status = run_traced(lambda: None, lambda call: None)
    return None if status == 0 else "this system does not allow ptrace with seccomp"


def calls_of(work: Callable[[], object], *, every: bool = False) -> list[str]:
    """The changing calls that some work makes, in order; or every call."""
    found: list[str] = []
    run_traced(work, lambda call: found.append(call.name), every=every)
    return found


def kill_at(number: int) -> Verdict:
    """Kill the process just before one call."""
    return lambda call: KILL if call.number == number else None


def fail_from(number: int, names: set[str], error: int, *, once: bool = False) -> Verdict:
    """Make calls of some names fail from one call on, as on a disk that is full."""

    def verdict(call: Call) -> int | None:
        late = call.number == number if once else call.number >= number
        return error if late and call.name in names else None

    return verdict


def run_traced(
    work: Callable[[], object],
    verdict: Verdict,
    screen: BinaryIO | None = None,
    *,
    every: bool = False,
) -> int:
    """Run work in a child under a verdict; its exit code, or minus the signal that ended it.

    What it prints goes to ``screen``, or nowhere. The verdict is asked at the calls that change
    something, or at every call.
    """
    child = fork()
    if child == 0:
        run_in_child(work, screen, lambda: _be_traced(every=every))
    tracer = _Tracer(child, every=every)
    try:
        return tracer.follow(verdict)
    finally:
        tracer.end()


def _be_traced(*, every: bool) -> None:
    libc = _libc()
    if libc.ptrace(_TRACEME, 0, None, None) != 0:
        os._exit(71)
    os.kill(os.getpid(), signal.SIGSTOP)
    if every:
        return
    steps = [_LOAD_NUMBER]
    for place, number in enumerate(CALLS):
        steps.append((_IF_EQUAL, len(CALLS) - place, 0, number))
    steps += [(_ANSWER, 0, 0, _ALLOW), (_ANSWER, 0, 0, _STOP)]
    program = _Program(len(steps), (_Instruction * len(steps))(*steps))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        os._exit(72)
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) != 0:
        os._exit(73)


class _Tracer:
    def __init__(self, child: int, *, every: bool) -> None:
        self._child = child
        self._every = every
        self._alive = True
        self._status = 0

    def follow(self, verdict: Verdict) -> int:
        for call in self._calls():
            what = verdict(call)
            if what == KILL:
                os.kill(self._child, signal.SIGKILL)
            elif what is not None:
                self._fail(what)
        return self._status

    def end(self) -> None:
        if self._alive:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def _calls(self) -> Iterator[Call]:
        """Every call that is looked at, as it is about to be made."""
        count, first, entering = 0, True, True
        while True:
            _, status = os.waitpid(self._child, 0)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self._alive = False
                self._status = os.waitstatus_to_exitcode(status)
                return
            passed_on = 0
            if status >> 8 == _SECCOMP_STOP:
                if (name := self._name()) is not None:
                    yield Call(count, name)
                    count += 1
            elif status >> 8 == _CALL_STOP:
                if entering:
                    yield Call(count, "any")
                    count += 1
                entering = not entering
            elif first:
                first = False
                self._ask(_SETOPTIONS, _SYSGOOD | _TRACE_SECCOMP | _EXITKILL)
            else:
                passed_on = os.WSTOPSIG(status)
            self._ask(_CONTINUE_TO_CALL if self._every else _CONTINUE, passed_on)

    def _name(self) -> str | None:
        registers = self._registers()
        name = CALLS.get(registers.orig_rax)
        if name == "openat" and not registers.rdx & CREATE:
            return None
        if name in ("write", "writev") and registers.rdi <= 2:
            return None
        return name

    def _registers(self) -> _Registers:
        registers = _Registers()
        self._ask(_GETREGS, ctypes.addressof(registers))
        return registers

    def _fail(self, error: int) -> None:
        """Turn the call that is about to be made into none at all that hands back an error."""
        registers = self._registers()
        registers.orig_rax = (1 << 64) - 1
        registers.rax = (1 << 64) - error
        self._ask(_SETREGS, ctypes.addressof(registers))

    def _ask(self, request: int, data: int) -> None:
        result = _libc().ptrace(request, self._child, None, ctypes.c_void_p(data))
        if result == -1 and ctypes.get_errno() not in (0, errno.ESRCH):
            raise OSError(ctypes.get_errno(), "ptrace")


def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long
    return library
