# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Functions whose code is replaced: in every order, after interrupts, in threads and children, compiled or nested."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import inspect
import itertools
import os
import sys
import threading
import traceback
import weakref
from types import FunctionType

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, jit, mint, nn, ops
from mindspore.ops import relu as early_relu, tanh as early_tanh

import probe
from probe import PrecisionDebugger
from probe.capture.code_patches import CodePatches
from probe.capture.support_ops import load_supported_apis
from probe.recording.call_stacks import is_replacement
from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = tensor(np.arange(6.0).reshape(2, 3))
#: a function of each kind
SMALL = "ops: [relu, tanh, conv2d]\ntensor: [abs, astype, from_numpy]\nmint: [abs]\n"


class State:
    """The state of one thread."""

    in_recorded_call = False


@pytest.fixture
def small(tmp_path):
    """Return the path of a list with a function of each kind."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture(scope="module")
def places():
    """Return the places of the listed functions, and of the methods that probe patches besides."""
    more = [(Tensor, "abs"), (nn.Cell, "__call__"), (nn.Cell, "_run_forward_pre_hook")]
    return [*((api.owner, api.name) for api in load_supported_apis(None)), *more]


def state_of(places):
    """Return what can be seen of functions at their places, and the thresholds of the garbage collector."""
    seen = []
    for owner, name in places:
        value = vars(owner).get(name)
        code = getattr(value, "__code__", None)
        seen.append(
            (
                value,
                code,
                [*vars(value).items()] if code else None,
                getattr(value, "__defaults__", None),
            )
        )
    return seen, gc.get_threshold()


# -- names taken before start -----------------------------------------------------------------------------------------


def test_a_name_taken_before_start_is_recorded_under_its_api_name_and_numbers_rise(debug):
    act, method = ops.relu, Tensor.astype

    def work():
        return (
            ops.relu(early_relu(X)),
            act(X),
            ops.relu(X),
            method(X, ms.float16),
            list(map(early_tanh, [X])),
        )

    _, dump = debug.record(work)
    assert [name for name in dump.data if "relu" in name] == [
        f"Functional.relu.{i}.forward" for i in range(4)
    ]
    assert "Tensor.to.0.forward" in dump.data and "Functional.tanh.0.forward" in dump.data
    assert not [name for name in dump.data if name.startswith("Primitive.fn")]
    frames = [frame for _, frames in dump.stack.values() for frame in frames[:1]]
    assert all(frame.startswith(f"File {__file__}") for frame in frames)


def test_early_names_false_records_as_before(debug):
    _, dump = debug.record(lambda: (early_relu(X), ops.relu(X)), early_names=False)
    assert list(dump.data) == ["Primitive.fn:relu.ReLU.0.forward", "Functional.relu.0.forward"]


def test_compare_pairs_calls_whose_numbers_have_shifted(debug):
    def work(scale):
        y = ops.relu(X)
        for _ in range(3):
            y = early_tanh(early_relu(y)) * scale
        return ops.relu(y).sum()

    folders = []
    for early_names, scale in [(False, 1.0), (True, 1.0), (True, 1.5)]:
        debug.dump_path = debug.path / f"dump{len(folders)}"
        debug.record(
            lambda scale=scale: ms.grad(lambda x: work(scale) + x.sum())(X), early_names=early_names
        )
        folders.append(debug.dump_path)
    before, after, wrong = folders
    for one, other in [(before, after), (after, before)]:
        comparison = probe.compare(one, other)
        assert comparison.ok, str(comparison)
        assert not comparison.only_a and not comparison.only_b
    first = probe.compare(before, wrong).first
    assert first is not None and "__mul__.0" in str(first.to_dict())


def test_of_two_keys_of_one_function_each_is_recorded_by_its_attribute(debug):
    assert mint.abs is ops.abs
    early = mint.abs
    _, dump = debug.record(lambda: (ops.abs(X), mint.abs(X), early(X)))
    assert list(dump.data) == [
        "Functional.abs.0.forward",
        "Mint.abs.0.forward",
        "Functional.abs.1.forward",
    ]


# -- every order, every ending ----------------------------------------------------------------------------------------


def interrupt_at(number, action):
    """Raise KeyboardInterrupt at the bytecode with this number inside probe/capture/; return whether there is one."""
    count, where = itertools.count(), os.path.join("probe", "capture") + os.sep

    def trace(frame, event, argument):
        if where not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(count) == number:
            raise KeyboardInterrupt
        return trace

    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks at it when tracing begins
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("ends", [False, True], ids=["start", "stop"])
def test_an_interrupt_at_any_bytecode_leaves_every_function_the_original(debug, small, ends):
    net, interrupts = nn.SequentialCell(nn.Dense(3, 3)), 0
    places = [
        (ops, "relu"),
        (ops, "tanh"),
        (ops, "conv2d"),
        (Tensor, "abs"),
        (Tensor, "astype"),
        (mint, "abs"),
    ]
    places += [(nn.Cell, "__call__"), (nn.Cell, "_run_forward_pre_hook"), (Tensor, "from_numpy")]
    debugger = debug(support_ops=small, level="mix")
    before = state_of(places)
    debugger.start(net)
    debugger.stop()
    for number in itertools.count():
        if ends:
            debugger.start(net)
            interrupted = interrupt_at(number, debugger.stop)
        else:
            interrupted = interrupt_at(number, lambda: debugger.start(net))
        if not interrupted:
            break
        interrupts += 1
        if (
            state_of(places) != before
        ):  # after an interrupt at the first or the last bytecodes of our method
            assert number < 30 or debugger._session.state.value == "recording", number
            debugger.step()
            assert state_of(places) == before, number
        debugger.stop()
    assert interrupts > 300
    debugger.step()
    assert state_of(places) == before
    debugger.start(net)
    early_relu(X)
    debugger.step()
    last = max(int(path.name[4:]) for path in debug.dump_path.iterdir())
    assert "Functional.relu.0.forward" in debug.dump(last).data


@pytest.mark.slow
def test_a_thousand_pairs_of_start_and_stop_leave_nothing_behind(debug, places):
    before, debugger = state_of(places), debug()

    def pairs(count):
        debugger.start()
        for _ in range(count):
            debugger.stop()
            debugger.start()
        debugger.step()
        gc.collect()
        return len(gc.get_objects()), sys.getallocatedblocks()

    pairs(100)
    objects, blocks = pairs(100)
    more_objects, more_blocks = pairs(1000)
    assert more_objects - objects < 100
    assert more_blocks - blocks < 300
    assert state_of(places) == before


@pytest.mark.parametrize("stopped", [False, True])
def test_a_capture_is_freed_with_its_session(debug, stopped):
    debugger = debug()
    debugger.start()
    ops.relu(X)
    capture = weakref.ref(debugger._session._parts.backends.current)
    recorder = weakref.ref(debugger._session._parts.window.open_step.recorder)
    if stopped:
        debugger.stop()
    debugger.close()
    del debugger
    gc.collect()
    assert capture() is None and recorder() is None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_captures_on_one_function_may_be_removed_in_any_order(order):
    code, seen, captures = ops.relu.__code__, [], []
    for name in ("first", "second"):
        patches = CodePatches(State())

        def call(key, original, args, kwargs, name=name):
            seen.append(name)
            return original(*args, **kwargs)

        patches.add(ops.relu, "Functional.relu", patches.gate(call))
        captures.append(patches)
        patches.install()
    signature = inspect.signature(ops.relu)
    ops.relu(X)
    assert seen == ["second"]
    for index in order:
        captures[index].remove()
    assert (
        ops.relu.__code__ is code
        and not vars(ops.relu)
        and inspect.signature(ops.relu) == signature
    )
    ops.relu(X)
    assert seen == ["second"]


@pytest.mark.slow
def test_a_second_debugger_takes_over_and_leaves_the_originals(debug, tmp_path, places):
    before = state_of(places)
    debug().start()
    second = PrecisionDebugger(dump_path=str(tmp_path / "second"), level="mix")
    assert state_of(places) == before
    second.start(nn.SequentialCell(nn.ReLU()))
    early_relu(X)
    second.step()
    second.close()
    assert state_of(places) == before
    assert "Functional.relu.0" in next((tmp_path / "second").rglob("dump.json")).read_text()


@pytest.mark.slow
def test_a_forked_child_has_the_originals(debug, places):
    before, debugger = state_of(places), debug()
    debugger.start()
    child = os.fork()
    if child == 0:
        same = False
        with contextlib.suppress(BaseException):
            same = state_of(places) == before
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert state_of(places) != before
    debugger.stop()
    assert state_of(places) == before


# -- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_inside_a_function_while_its_code_is_replaced_finish_their_call(debug):
    debugger, failures, stops = debug(), [], threading.Event()
    expected = ops.tanh(X).asnumpy().tobytes()

    def work():
        try:
            while not stops.is_set():
                assert early_tanh(X).asnumpy().tobytes() == expected
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            debugger.start()
            early_relu(X)
            debugger.step()
    finally:
        stops.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert all("Functional.relu.0.forward" in debug.dump(step).data for step in range(8))


# -- MindSpore compiles -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_compiled_listed_function_is_compiled_once_and_keeps_its_phase(debug):
    name = (
        "mindspore.graph.api"
        if importlib.util.find_spec("mindspore.graph.api")
        else "mindspore.common.api"
    )
    api = importlib.import_module(name)  # the one since 2.9, then the one before
    compiled, (x, y) = jit(ops.addcmul), (X, X + 1.0)
    bare = compiled(x, y, y, value=2.0).asnumpy()
    before = len(api.ms_compile_cache)
    result, dump = debug.record(lambda: compiled(x, y, y, value=2.0).asnumpy())
    assert result.tobytes() == bare.tobytes() == compiled(x, y, y, value=2.0).asnumpy().tobytes()
    assert len(api.ms_compile_cache) == before
    assert list(dump.data) == ["Jit.addcmul.0.forward"]
    with pytest.raises(TypeError):
        compiled()
    if hasattr(api, "_get_func_args_info_cached"):
        assert api._get_func_args_info_cached(ops.addcmul, False) == (False, 3, 1)


@pytest.mark.slow
def test_a_compiled_listed_function_is_called_for_the_first_time_while_it_is_recorded(debug):
    compiled, y = jit(ops.addcdiv), X + 1.0
    with_probe, dump = debug.record(lambda: compiled(X, X, y).asnumpy())
    np.testing.assert_array_equal(with_probe, ops.addcdiv(X, X, y).asnumpy())
    assert list(dump.data) == ["Jit.addcdiv.0.forward"]
    with pytest.raises(TypeError):
        compiled(X)


@pytest.mark.slow
def test_tables_of_functions_that_are_made_while_recording_find_the_functions_later(debug):
    import_errors = []
    for name in (
        "mindspore.graph._pijit.pijit_func_white_list",
        "mindspore._extends.pijit.pijit_func_white_list",
    ):
        with contextlib.suppress(ImportError):
            known = sys.modules.pop(name, None)
            debugger = debug()
            debugger.start()
            try:
                table = importlib.import_module(name)._func_map
            finally:
                debugger.close()
                if known is not None:
                    sys.modules[name] = known
            for function in (
                ops.functional.assign,
                Tensor.astype,
                Tensor.assign_value,
                Tensor.tolist,
            ):
                assert ms._c_expression.function_id(function) in table
            return
        import_errors.append(name)
    pytest.skip(f"this MindSpore has none of {import_errors}")


# -- calls as without probe -------------------------------------------------------------------------------------------


def test_arguments_errors_and_frames_are_those_of_the_original(debug):
    def message(call):
        try:
            call()
        except TypeError as error:
            return str(error)
        return ""

    calls = [
        lambda: ops.relu(),
        lambda: ops.relu(X, 1, 2),
        lambda: ops.softmax(X, wrong=1),
        lambda: ops.dense(X),
    ]
    bare = [message(call) for call in calls]
    assert all(bare)
    debugger = debug()
    debugger.start()
    assert [message(call) for call in calls] == bare
    try:
        ops.concat((X, X), axis=7)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
    debugger.stop()
    code = ops.concat.__code__
    assert (frames[1].filename, frames[1].name, frames[1].lineno) == (
        code.co_filename,
        "concat",
        code.co_firstlineno,
    )


def test_defaults_that_the_user_changes_between_steps_are_used(debug):
    def scaled():
        return float(ops.elu(tensor([-1.0])).asnumpy()[0])

    debugger, before = debug(), ops.elu.__defaults__
    names = list(inspect.signature(ops.elu).parameters)
    debugger.start()
    bare = scaled()
    debugger.step()
    try:
        ops.elu.__defaults__ = (1.0,)
        debugger.start()
        assert scaled() == bare
        assert list(inspect.signature(ops.elu).parameters) == names
        assert inspect.signature(ops.elu).parameters[names[1]].default is ops.elu.__defaults__[0]
        debugger.step()
    finally:
        ops.elu.__defaults__ = before


def test_code_that_the_user_gives_a_function_while_it_is_recorded_stays_and_is_recorded_later(
    debug,
):
    original = ops.relu6.__code__

    def doubled(x):
        return x * 2.0

    debugger = debug()
    debugger.start()
    try:
        ops.relu6.__code__ = doubled.__code__
        debugger.step()
        assert ops.relu6.__code__ is doubled.__code__ and not vars(ops.relu6)
        debugger.start()
        assert ops.relu6(X).asnumpy().tolist() == (X * 2.0).asnumpy().tolist()
        debugger.step()
        assert ops.relu6.__code__ is doubled.__code__
    finally:
        debugger.stop()
        ops.relu6.__code__ = original
    assert next(iter(debug.dump(1).data)) == "Functional.relu6.0.forward"


def test_the_frames_of_a_closure_can_be_read(debug):
    closures = [
        f
        for f in map(value_of, load_supported_apis(None))
        if isinstance(f, FunctionType) and f.__closure__
    ]
    assert closures
    seen = []

    def read(frame, event, argument):
        if is_replacement(frame.f_code):
            seen.append(set(frame.f_code.co_freevars) <= set(frame.f_locals))

    debugger = debug()
    debugger.start()
    sys.setprofile(read)
    try:
        for function in closures[:3]:
            with contextlib.suppress(Exception):
                function()
    finally:
        sys.setprofile(None)
    debugger.stop()
    assert seen and all(seen)


def value_of(api):
    return getattr(api.owner, api.name)


def test_a_call_has_one_frame_more_than_without_probe():
    names = {"__name__": "mindspore.of_this_test", "sys": sys}
    exec("def down(n): return 0 if n == 0 else 1 + down(n - 1)", names)
    patches, seen = CodePatches(State()), []

    def call(key, original, args, kwargs):
        seen.append(key)
        return original(*args, **kwargs)

    patches.add(names["down"], "Functional.down", patches.gate(call))
    patches.install()
    assert names["down"](200) == 200 and seen == ["Functional.down"]
    assert frames_of(names["down"], 50) == 2 * 51
    patches.remove()
    assert frames_of(names["down"], 50) == 51


def frames_of(function, count):
    """Return how many frames of a recursive function's name are on the stack at its end."""
    most = 0

    def look(frame, event, argument):
        nonlocal most
        found = 0
        while frame is not None:
            found, frame = found + (frame.f_code.co_name == "down"), frame.f_back
        most = max(most, found)

    sys.setprofile(look)
    try:
        function(count)
    finally:
        sys.setprofile(None)
    return most


def test_the_places_that_keep_their_identity_are_as_many_as_the_documents_say(debug):
    apis = load_supported_apis(None)
    before = [value_of(api) for api in apis]
    debugger = debug()
    debugger.start()
    lost = [api for api, value in zip(apis, before) if value_of(api) is not value]
    debugger.stop()
    assert {type(value).__name__ for api, value in zip(apis, before) if api in lost} <= {
        "function",
        "method_descriptor",
    }
    if ms.__version__.startswith("2.10"):
        c_methods = [value for value in before if not isinstance(value, FunctionType)]
        assert (len(apis), len(lost), len(c_methods)) == (2214, 315, 202)
