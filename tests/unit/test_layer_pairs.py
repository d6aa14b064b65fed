"""Which layers are compared, by the block map or by name."""

from dataclasses import replace

import pytest

from emo.errors import DataError
from emo.layer_pairs import layer_pairs
from emo.requests import RowRequest

from ..tiny_models import EMO_ROWS


def asking(layers):
    return replace(RowRequest.from_name(EMO_ROWS), layers=layers)


def test_layer_pairs():
    """The block map g(i) = i * b + b - 1 with b = N_T // N_S."""
    assert layer_pairs(asking(2), 12, 32) == [(10, 21), (11, 23)]
    assert layer_pairs(asking(1), 12, 24) == [(11, 23)]
    assert layer_pairs(asking(2), 2, 4) == [(0, 1), (1, 3)]
    assert layer_pairs(asking(3), 3, 3) == [(0, 0), (1, 1), (2, 2)]


def test_named_layer_pairs_are_taken_as_they_are():
    assert layer_pairs(asking(((1, 2), (0, 3))), 2, 4) == [(1, 2), (0, 3)]


@pytest.mark.parametrize(("student_layers", "last"), [(2, 3), (5, 1)])
def test_layers_that_do_not_exist_are_refused(student_layers, last):
    with pytest.raises(DataError, match="ask for fewer `layers` in the method"):
        layer_pairs(asking(last), student_layers, 4)


@pytest.mark.parametrize("pair", [(2, 1), (1, 4)])
def test_named_layers_that_do_not_exist_are_refused(pair):
    with pytest.raises(DataError, match=rf"layers \[{pair[0]}, {pair[1]}\]: the student has lay"):
        layer_pairs(asking((pair,)), 2, 4)
