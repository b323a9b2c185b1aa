# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A process that has imported MindSpore, run no operation, and forks for each program of the tests.

Importing MindSpore takes 1 to 2 seconds of a processor, a fork milliseconds. ``tests.support.processes`` starts one
server for each process of pytest and asks it for programs:

    request   one datagram: a JSON object (see ``Request``) with the descriptors of stdin, stdout and stderr
    answer    one datagram: the number of the program's process

The program is a grandchild. Its parent ends at once, so the kernel hands the program to pytest's process, which then
waits for it, kills it and reads its exit status as of any child of its own.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import multiprocessing.process
import os
import runpy
import signal
import socket
import sys
import threading
import types
from dataclasses import asdict, dataclass

#: the largest request: arguments hold whole programs
_LARGEST = 1 << 20
_STREAMS = 3
#: the answer where a fork has failed
_NO_PROCESS = b"-1"


@dataclass(frozen=True)
class Request:
    """A program: as ``python`` would be given it.

    Attributes:
        arguments: those behind ``python``: ``-c CODE``, ``-m MODULE`` or a path, and the program's own.
        folder: the working folder.
        variables: the whole environment.
        new_session: whether the program leads a session of its own.
        ignores_interrupts: whether SIGINT is ignored, as it is behind `&` in a shell's script.
    """

    arguments: list[str]
    folder: str
    variables: dict[str, str]
    new_session: bool = False
    ignores_interrupts: bool = False

    def send(self, connection, streams):
        """Ask the server at the other end of a socket; return the number of the new process.

        Raises:
            OSError: when there is no such process: the system has no memory for it, or the server has ended.
        """
        socket.send_fds(connection, [json.dumps(asdict(self)).encode()], streams)
        number = int(connection.recv(64) or _NO_PROCESS)
        if number < 0:
            raise OSError("the fork server has no process for this program")
        return number

    def run(self):
        """Become the program, in a process that was made for it. The interpreter ends as it does after any program."""
        os.chdir(self.folder)
        if self.new_session:
            os.setsid()
        signal.signal(
            signal.SIGINT, signal.SIG_IGN if self.ignores_interrupts else signal.default_int_handler
        )
        os.environ.clear()
        os.environ.update(self.variables)
        sys.modules[
            "numpy"
        ].random.seed()  # as a new process: not the numbers of the server's other children
        multiprocessing.process.ORIGINAL_DIR = (
            os.getcwd()
        )  # below which spawned processes look for the program
        _renew_streams()
        sys.path[:0] = filter(None, self.variables.get("PYTHONPATH", "").split(os.pathsep))
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        first, *rest = self.arguments
        if first == "-m":
            sys.argv = ["-m", *rest[1:]]
            sys.path.insert(0, os.getcwd())
            runpy._run_module_as_main(rest[0])
        elif first == "-c":
            sys.argv = ["-c", *rest[1:]]
            sys.path.insert(0, "")
            exec(compile(rest[0], "<string>", "exec"), main.__dict__)
        else:
            sys.argv = [first, *rest]
            sys.path.insert(0, os.path.dirname(os.path.realpath(first)))
            main.__file__ = os.path.abspath(first)
            with open(first, "rb") as file:
                exec(compile(file.read(), main.__file__, "exec"), main.__dict__)


def _renew_streams():
    """Make the objects of stdin, stdout and stderr anew: they remember the kind of their file."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw = io.FileIO(number, old.mode, closefd=False)
        raw.name = f"<{name}>"
        file = (
            raw
            if old.write_through
            else (io.BufferedReader if name == "stdin" else io.BufferedWriter)(raw)
        )
        at_lines = name == "stderr" or raw.isatty()
        new = io.TextIOWrapper(file, old.encoding, old.errors, None, at_lines, old.write_through)
        new.mode = old.mode
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _receive(connection):
    """Return the next request and its descriptors, or None when pytest's process has gone."""
    text, streams, _, _ = socket.recv_fds(connection, _LARGEST, _STREAMS)
    return (Request(**json.loads(text)), streams) if text else None


def _serve(connection):
    """Fork for each request. Return the request in the process that is to run it; the server itself never returns."""
    while True:
        received = _receive(connection)
        if received is None:
            os._exit(0)
        request, streams = received
        told, tell = os.pipe()
        handed_over, hand_over = os.pipe()
        between = os.fork()
        if not between:
            program = os.fork()
            if program:
                os.write(tell, str(program).encode())
                os._exit(0)
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for descriptor in (*streams, told, tell, hand_over):
                os.close(descriptor)
            os.read(handed_over, 1)  # until pytest's process is the parent
            os.close(handed_over)
            return request
        os.close(tell)
        os.waitpid(between, 0)
        connection.send(os.read(told, 64) or _NO_PROCESS)
        for descriptor in (*streams, told, handed_over, hand_over):
            os.close(descriptor)


def _without_server(error):
    """Take the server's own frames out of a traceback, as a user's program has none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (
        __file__,
        runpy.__file__,
        "<frozen runpy>",
    ):
        trace = trace.tb_next
    return error.with_traceback(trace)


def main(descriptor, *imports):
    """Serve; in a program's process, run the program and end as the interpreter does."""
    del sys.path[0]  # the folder of this file
    for name in ("mindspore", *imports):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the end of a program does not visit the objects that it shares with the server
    request = _serve(socket.socket(fileno=descriptor))
    try:
        request.run()
    except (SystemExit, KeyboardInterrupt):
        raise  # the interpreter ends as the program wishes, or by the signal
    except BaseException as error:
        error = _without_server(error)
        sys.excepthook(type(error), error, error.__traceback__)
        threading._shutdown()
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
