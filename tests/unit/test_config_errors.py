from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emo.config_errors import explain, nearest


class Circle(BaseModel):
    model_config = ConfigDict(extra="forbid")
    form: Literal["circle"]
    radius: int | None = None


class Square(BaseModel):
    form: Literal["square"]


class Drawing(BaseModel):
    shapes: dict[str, Annotated[Circle | Square, Field(discriminator="form")]]
    sizes: list[int] = []


def explained(content):
    with pytest.raises(ValidationError) as caught:
        Drawing.model_validate(content)
    return explain(caught.value, Drawing)


def test_nearest():
    assert nearest("stps", ["steps", "seeds"]) == "; did you mean `steps`?"
    assert nearest("zzz", ["b", "a"]) == "; known: a, b"
    assert nearest("zzz", []) == ""


def test_the_tag_of_a_union_is_no_part_of_the_key():
    """`shapes.mine.circle.radus` would name a key that stands nowhere in the file."""
    fault = explained({"shapes": {"mine": {"form": "circle", "radus": 1}}})
    assert fault == "shapes.mine.radus: unknown key; did you mean `radius`?"


def test_a_key_that_is_called_like_a_tag_stays():
    fault = explained({"shapes": {"circle": {"form": "circle", "radius": "x"}}})
    assert fault.startswith("shapes.circle.radius: Input should be a valid integer")


@pytest.mark.parametrize(("given", "hinted"), [("3", True), ("1e-4", True), ("x", False)])
def test_a_number_given_as_text_is_told_apart_from_other_text(given, hinted):
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        rate: float

    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"rate": given})
    fault = explain(caught.value, Strict)
    assert fault.startswith("rate: Input should be a valid number")
    assert ("take the quotes off" in fault) is hinted


def test_list_places_are_in_brackets_and_repeats_are_said_once():
    fault = explained({"shapes": {}, "sizes": [1, "x", 2]})
    assert fault.startswith("sizes[1]: Input should be a valid integer")
    assert len(fault.splitlines()) == 1
