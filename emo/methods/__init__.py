"""Methods: which losses, on what, with which weights. One file a method."""

from emo.methods.base import Method, Terms
from emo.methods.build import build_method
from emo.methods.head import fit_head

__all__ = ["Method", "Terms", "build_method", "fit_head"]
