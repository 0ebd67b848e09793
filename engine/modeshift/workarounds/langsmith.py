"""``load_types_later`` for ``langsmith``; seen with 0.14.17."""

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any

TYPES = "langsmith.types"


def load_types_later() -> None:
    """Have this package import its 120 modules where somebody asks for one of its names.

    LangGraph imports ``langsmith``, which needs one of the modules: the rest was a sixth of the
    time. No issue asks for it yet: "langsmith.types should import at the first use of a name".
    """
    spec = None if TYPES in sys.modules else find_spec(TYPES)
    if spec is None or spec.loader is None:
        return
    package, loader, lock, begun = module_from_spec(spec), spec.loader, RLock(), list[str]()

    def load(name: str) -> Any:
        with lock:
            if not begun:
                begun.append(name)
                loader.exec_module(package)
        return object.__getattribute__(package, name)

    vars(package)["__getattr__"] = load
    sys.modules[TYPES] = package
