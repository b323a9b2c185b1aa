# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""SigtermHandler in processes of its own, without MindSpore: who is called when SIGTERM comes, and who has it after."""

from __future__ import annotations

import signal
import sys
import textwrap

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = pytest.mark.slow

PRELUDE = """
import os, signal, sys, threading
from probe.process.signals import SigtermHandler, call_in_forked_child

def say(*words):
    print(*words, flush=True)

def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(100):  # Python calls the handler between two instructions
        pass

def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def own(number, frame):
    say("own handler", number == signal.SIGTERM, frame is not None)

handler = SigtermHandler(lambda: say("finish"), lambda: say("save"))
"""


def run(code):
    """Run a program that has a handler; return the words that it said and how it ended."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code)]
    done = processes.run(command, capture_output=True, text=True, check=False, env=environment())
    assert not done.stderr, done.stderr
    return done.stdout.splitlines(), done.returncode


def test_where_nobody_had_the_signal_the_dump_is_finished_and_the_process_ends_by_it():
    said = run("""
        handler.install()
        terminate()
        say("went on")
    """)
    assert said == (["finish"], -signal.SIGTERM)


def test_a_signal_that_comes_from_another_thread_ends_the_process_too():
    said = run("""
        handler.install()
        in_thread(terminate)
        say("went on")
    """)
    assert said == (["finish"], -signal.SIGTERM)


def test_a_handler_of_the_user_from_before_decides_and_the_dump_is_saved_first():
    said = run("""
        signal.signal(signal.SIGTERM, own)
        handler.install()
        terminate()
        terminate()
        say("went on")
    """)
    assert said == (["save", "own handler True True"] * 2 + ["went on"], 0)


def test_a_handler_of_the_user_may_end_the_process():
    said = run("""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        handler.install()
        terminate()
        say("went on")
    """)
    assert said == (["save"], 7)


def test_after_a_handler_of_the_user_has_raised_the_next_signal_is_handled():
    said = run("""
        def refuse(number, frame):
            raise KeyError("not now")

        signal.signal(signal.SIGTERM, refuse)
        handler.install()
        for _ in range(2):
            try:
                terminate()
            except KeyError as error:
                say(error)
    """)
    assert said == (["save", "'not now'"] * 2, 0)


def test_a_handler_of_the_user_from_later_has_the_signal_to_itself():
    said = run("""
        handler.install()
        signal.signal(signal.SIGTERM, own)
        terminate()
        handler.remove()
        say(signal.getsignal(signal.SIGTERM) is own)
    """)
    assert said == (["own handler True True", "True"], 0)


def test_a_later_handler_that_calls_the_one_it_found_has_the_dump_saved_and_decides():
    said = run("""
        handler.install()
        found = signal.getsignal(signal.SIGTERM)

        def chained(number, frame):
            say("first")
            found(number, frame)
            say("last")

        signal.signal(signal.SIGTERM, chained)
        terminate()
        handler.remove()
        say(signal.getsignal(signal.SIGTERM) is chained)
    """)
    assert said == (["first", "save", "last", "True"], 0)


def test_handlers_that_call_each_other_do_so_once():
    said = run("""
        handler.install()
        found = signal.getsignal(signal.SIGTERM)

        def chained(number, frame):
            say("chained")
            found(number, frame)

        signal.signal(signal.SIGTERM, chained)
        handler.remove()
        handler.install()  # now each has found the other
        terminate()
        say("went on")
    """)
    assert said == (["save", "chained", "went on"], 0)


def test_a_signal_that_is_ignored_stays_ignored():
    said = run("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        handler.install()
        terminate()
        say(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)
        handler.remove()
        say(signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)
    """)
    assert said == (["True", "True"], 0)


@pytest.mark.parametrize("before", ["own", "signal.SIG_DFL"])
def test_remove_gives_the_signal_back_and_both_may_be_called_twice(before):
    said = run(f"""
        signal.signal(signal.SIGTERM, {before})
        handler.remove()
        for _ in range(2):
            handler.install()
            handler.install()
            say(signal.getsignal(signal.SIGTERM) == {before})
            handler.remove()
            handler.remove()
            say(signal.getsignal(signal.SIGTERM) == {before})
    """)
    assert said == (["False", "True"] * 2, 0)


def test_outside_of_the_main_thread_nothing_is_installed_and_nothing_removed():
    said = run("""
        in_thread(handler.install)
        say(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        handler.install()
        in_thread(handler.remove)
        say(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        handler.remove()
        say(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
    """)
    assert said == (["True", "False", "True"], 0)


FORKS = """
import weakref

class Owner:
    def release(self):
        say("released in", "parent" if os.getpid() == parent else "child")

parent, owner = os.getpid(), Owner()
call_in_forked_child(weakref.WeakMethod(owner.release))

def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_a_forked_child_calls_the_method_while_its_object_lives():
    said = run(
        FORKS
        + textwrap.dedent("""
        fork()
        fork()
        del owner
        fork()
        say("end")
    """)
    )
    assert said == (["released in child"] * 2 + ["end"], 0)
