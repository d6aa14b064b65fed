"""Bring models of any supported layout into one: a SentenceTransformer folder."""

from emo.models.prepare import prepare_model

__all__ = ["prepare_model"]
