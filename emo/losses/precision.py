"""The precision that every loss computes in, whatever precision the models run in."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def in_full_precision(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Run a tensor function in float32, or in float64 if it is given any, outside autocast.

    Half precision is not enough for the losses: Sinkhorn potentials lose their marginals in
    bfloat16 and underflow in float16. Boolean and integer arguments are left as they are.

    Args:
        function: Takes at least one floating-point tensor as a direct argument.

    Returns:
        The same function; its floating-point arguments are widened on the way in.

    Example:
        >>> @in_full_precision
        ... def total(values: Tensor) -> Tensor:
        ...     return values.sum()
        >>> total(torch.ones(3, dtype=torch.float16)).dtype
        torch.float32
    """

    @wraps(function)
    def widened(*args: Any, **kwargs: Any) -> _Result:
        floating = [value for value in (*args, *kwargs.values()) if _is_floating(value)]
        wide = any(value.dtype == torch.float64 for value in floating)
        dtype = torch.float64 if wide else torch.float32
        with torch.autocast(device_type=floating[0].device.type, enabled=False):
            return function(
                *(_widen(value, dtype) for value in args),  # type: ignore[arg-type]
                **{name: _widen(value, dtype) for name, value in kwargs.items()},  # type: ignore[arg-type]
            )

    return cast("Callable[_Parameters, _Result]", widened)


def _is_floating(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _widen(value: object, dtype: torch.dtype) -> object:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
