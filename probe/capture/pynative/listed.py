# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Watches listed functions: MindSpore's own by their code, all others by a patch of the attribute.

Communication between ranks has its inputs from before the call, its outputs from after the training has waited for it.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from probe.capture.code_patches import can_be_replaced
from probe.capture.patches import HookGroup, Patch
from probe.capture.pynative.context import ApiHooks, CaptureContext
from probe.capture.pynative.thread_state import OpenCall
from probe.capture.support_ops import SupportedApi
from probe.naming import COLLECTIVE
from probe.recording.step_recorder import StepRecorder

_Place = tuple[Mapping[str, Any], str, Any, SupportedApi]
_Item = TypeVar("_Item")


class CollectiveHooks(ApiHooks):
    """Records calls that communicate.

    In-place collectives return no tensor; their output is their arguments after the call. The output of an asynchronous
    call is recorded when the training waits for its handle. The tool never waits for a handle itself.
    """

    def __init__(self, context: CaptureContext) -> None:
        super().__init__(context)
        self._handles = context.handles

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the original; see ``ApiHooks``."""
        wrapper = super().wrap(key, original)
        return (
            _EqualToOriginal(wrapper, original) if key.endswith((".isend", ".irecv")) else wrapper
        )

    def _synchronize(self, recorder: StepRecorder, result: Any) -> None:
        if not self._handles.find(result):
            recorder.queue.synchronize()

    def _end(
        self,
        opened: OpenCall,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        with opened.recorder.guard("reading the ranks of a group", opened.call):
            opened.call.parts.update(_members(opened.call.key, original, args, kwargs))
        outcome = result if self._handles.has_tensors(result) else (*args, *kwargs.values())
        handles = self._handles.find(result)
        if not handles:
            self._context.end(opened, outcome)
        elif not opened.is_repeated:
            self._handles.follow(opened.recorder, handles, opened.call, outcome)


class _EqualToOriginal:
    """Compares equal to the original, because P2POp accepts only mint's isend and irecv."""

    def __init__(self, wrapper: Callable[..., Any], original: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._wrapper = wrapper
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapper(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)


def _members(
    key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the ranks of the group of a call, and the rank that it sends to or receives from."""
    from mindspore.communication import GlobalComm, get_process_group_ranks

    if not GlobalComm.INITED:
        return {}
    bound = inspect.signature(original).bind(*args, **kwargs)
    bound.apply_defaults()
    group, *peers = (bound.arguments.get(name) for name in ("group", "src", "dst"))
    # texts, as msprobe's compare fails on numbers in an entry
    ranks = get_process_group_ranks(group or GlobalComm.WORLD_COMM_GROUP)
    found: dict[str, Any] = {"group_ranks": list(map(str, ranks))}
    if key.endswith(("send", "recv")):
        found["peer"] = str(next(peer for peer in peers if peer is not None))
    return found


def _chosen(by_key: Mapping[str, Sequence[_Item]], only: Collection[str] | None) -> Iterator[_Item]:
    """Yield the items of all keys, or of these alone."""
    for key in by_key if only is None else only:
        yield from by_key.get(key, ())


class ListedFunctions:
    """Records the calls of listed functions.

    A function's code knows one key, that of the first API in the list. Another key of the same function, such as
    ``Mint.abs`` of ``ops.abs``, has a patch of the attribute. So have C methods of Tensor, which have no code, and the
    user's functions in places of MindSpore's. Without ``by_code``, all have patches of attributes.
    """

    def __init__(
        self, context: CaptureContext, listed: Iterable[SupportedApi], by_code: bool, **flags: bool
    ) -> None:
        self._apis = ApiHooks(context, **flags)
        self._collectives = CollectiveHooks(context)
        self._codes = context.codes if by_code else None
        #: the patches of attributes, by the keys of their calls
        self._patches: defaultdict[str, list[Patch]] = defaultdict(list)
        #: the keys whose functions ``install`` watches; None for all
        self._only: Collection[str] | None = None
        self._installed = HookGroup()
        #: (names of a module or class, name, its value there, API), for each API whose calls are recorded by code
        self._places: defaultdict[str, list[_Place]] = defaultdict(list)  # by key
        self._replaced: dict[
            tuple[int, str], Patch
        ] = {}  # for those of them that have another value now
        gates = {
            hooks: context.codes.gate(hooks.enter)
            for hooks in (self._apis, self._collectives)
            if by_code
        }
        for api in listed:
            names: Mapping[str, Any] = vars(api.owner)
            value = names.get(api.name)
            function: Any = value.__func__ if isinstance(value, staticmethod) else value
            is_usual = by_code and can_be_replaced(function)
            if (
                is_usual
                and context.codes.add(function, api.key, gates[self._hooks(api)]) == api.key
            ):
                self._places[api.key].append((names, api.name, value, api))
            else:
                self._patches[api.key].append(self._patch(api))

    @property
    def keys(self) -> set[str]:
        """The keys of all listed functions."""
        return {*self._patches, *self._places}

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` watch the functions with these keys alone."""
        self._only = only

    def install(self) -> None:
        """Begin to record. The user may have put other functions into the places since the last time."""
        only = self._only
        if self._codes is not None:
            self._codes.only = only
            self._codes.install()
        for names, name, value, api in _chosen(self._places, only):
            if names.get(name) is not value:
                place = id(api.owner), name
                if place not in self._replaced:
                    self._replaced[place] = self._patch(api)
                self._replaced[place].install()
        self._installed.remove()
        self._installed = HookGroup(_chosen(self._patches, only))
        self._installed.install()

    def remove(self) -> None:
        """Restore the originals."""
        self._installed.remove()
        for patch in self._replaced.values():
            patch.remove()
        if self._codes is not None:
            self._codes.remove()

    def _hooks(self, api: SupportedApi) -> ApiHooks:
        return self._collectives if api.key.partition(".")[0] in COLLECTIVE else self._apis

    def _patch(self, api: SupportedApi) -> Patch:
        return Patch(api.owner, api.name, functools.partial(self._hooks(api).wrap, api.key))
