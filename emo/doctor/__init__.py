"""Examine a prepared teacher before hours are spent on storing what it says."""

from emo.doctor.examine import examine

__all__ = ["examine"]
