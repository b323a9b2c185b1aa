# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A stand-in for CANN's packages te and tbe, which MindSpore imports: every name may be called and used to decorate."""

import importlib.abc
import importlib.machinery
import sys
import types


class Anything:
    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def __getattr__(self, name):
        return named(name)


class EmptyModule(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        return named(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of te and tbe, and makes it empty."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("te", "tbe") and name != "te":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


def named(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything()


sys.meta_path.insert(0, Finder())
version = types.SimpleNamespace(version="8.5.0")
__getattr__ = named
