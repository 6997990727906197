"""Importing packages that ask for more than their models need."""

import dataclasses
import importlib
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Anything(type):
    """A class with every attribute, each of them such a class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Stub(ModuleType):
    """A module with every name, each of them an empty class."""

    __version__ = "999"
    __path__: list[str] = []  # noqa: RUF012, what makes a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        return ModuleSpec(fullname, self) if top in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def stubs(*packages: str) -> Iterator[None]:
    """Let imports of these packages succeed inside, installed or not.

    A toolkit imports readers of files, writers of logs and tokenizers beside its model.
    Those that are not installed are empty; what is installed is imported as always.
    """
    finder = _Finder(packages)
    sys.meta_path.append(finder)  # asked last
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _Stub):
                del sys.modules[name]


@contextmanager
def hashable_dataclasses(*packages: str) -> Iterator[None]:
    """Let dataclasses of these packages be defaults of each other's fields.

    Python 3.11 refuses defaults without a hash as probably mutable.
    """
    original: Any = dataclasses.dataclass

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if cls.__module__.partition(".")[0] in packages:
            options.setdefault("unsafe_hash", True)
        return original(cls, **options)

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = original


def need(name: str) -> Any:
    """Import a module that may not be installed, untyped as these are.

    What it regrets about newer versions of its own imports is not repeated, nor what
    it reports about its work.
    """
    package = name.partition(".")[0]
    logging.getLogger(package).setLevel(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        module = importlib.import_module(name)
    for logger in logging.root.manager.loggerDict:
        if logger.startswith(f"{package}."):
            logging.getLogger(logger).setLevel(logging.WARNING)
    return module
