"""Distil large text-embedding models into small ones, across tokenizers."""

__version__ = "0.1.0"
