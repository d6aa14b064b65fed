"""Say what is wrong with a config in words that help: the key, the fault, the near right name."""

import difflib
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a suffix for an error message: the nearest known name, else all of them.

    >>> nearest("stps", ["steps", "seeds"])
    '; did you mean `steps`?'
    >>> nearest("xyz", ["steps", "seeds"])
    '; known: seeds, steps'
    """
    known = sorted(known)
    matches = difflib.get_close_matches(word, known, n=1)
    if matches:
        return f"; did you mean `{matches[0]}`?"
    return f"; known: {', '.join(known)}" if known else ""


def explain(error: ValidationError, root: type[BaseModel]) -> str:
    """Turn a validation error into one line per fault, each starting with the dotted key."""
    lines = [_line(fault, root) for fault in error.errors(include_url=False)]
    return "\n".join(dict.fromkeys(lines))


def _line(fault: Any, root: type[BaseModel]) -> str:
    location = fault["loc"]
    key = _dotted(location, root)
    match fault["type"]:
        case "extra_forbidden":
            known = _fields_at(location[:-1], root)
            return f"{key}: unknown key{nearest(str(location[-1]), known)}"
        case "missing":
            return f"{key}: missing; add it"
        case "union_tag_not_found":
            return f"{key}: needs the key {fault['ctx']['discriminator']}"
        case "union_tag_invalid":
            expected = [tag.strip(" '") for tag in fault["ctx"]["expected_tags"].split(",")]
            given = fault["ctx"]["tag"]
            if fault["ctx"]["discriminator"].endswith("()"):  # kinds of value, no key to misspell
                return f"{key}: expected {' or '.join(expected)} (given: {fault['input']!r})"
            return f"{key}: unknown {fault['ctx']['discriminator']} `{given}`" + nearest(
                given, expected
            )
        case "literal_error":
            expected = fault["ctx"]["expected"].replace(" or ", ", ").split(", ")
            given = fault["input"]
            return f"{key}: unknown value `{given}`" + nearest(
                str(given), [choice.strip("'") for choice in expected]
            )
        case "int_type" | "float_type" if _is_number(fault["input"]):
            return (
                f"{key}: {fault['msg']}, not text (given: {fault['input']!r}); take the quotes "
                "off, and write 1.0e-4 for 1e-4, which YAML reads as text"
            )
        case "value_error":
            reason = str(fault["ctx"]["error"])
            return f"{key}: {reason}" if key else reason
        case _:
            return f"{key}: {fault['msg']} (given: {fault['input']!r})"


def _is_number(value: Any) -> bool:
    """Return whether text looks like a number to whoever wrote it."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def _dotted(location: tuple[int | str, ...], root: type[BaseModel]) -> str:
    """Join a location, leaving out the union tags and key marks that pydantic puts into it."""
    parts: list[str] = []
    for depth, part in enumerate(location):
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif depth == 0 or not (part == "[key]" or _is_tag(location[: depth + 1], root)):
            parts.append(f".{part}" if parts else str(part))
    return "".join(parts)


def _is_tag(location: tuple[int | str, ...], root: type[BaseModel]) -> bool:
    parent = _type_at(location[:-1], root)
    return not _is_model(parent) and location[-1] in _tagged(parent)


def _fields_at(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    model = _type_at(location, root)
    return list(model.model_fields) if _is_model(model) else []


def _type_at(location: tuple[int | str, ...], root: type[BaseModel]) -> Any:
    """Walk the annotations along a location as far as they go."""
    current: Any = root
    for part in location:
        if _is_model(current):
            field = current.model_fields.get(str(part))
            current = _bare(field.annotation) if field else None
        elif part in (tagged := _tagged(current)):
            current = tagged[part]
        else:
            arguments = get_args(current)
            current = _bare(arguments[-1]) if arguments else None
    return current


def _bare(annotation: Any) -> Any:
    """Strip ``Annotated`` and ``| None``."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    choices = [choice for choice in get_args(annotation) if choice is not type(None)]
    if type(None) in get_args(annotation) and len(choices) == 1:
        return _bare(choices[0])
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _tagged(annotation: Any) -> dict[Any, Any]:
    """Return the members of a tagged union by tag."""
    members: dict[Any, Any] = {}
    for member in get_args(annotation):
        model = _bare(member)
        for metadata in getattr(member, "__metadata__", ()):
            if hasattr(metadata, "tag"):
                members[metadata.tag] = model
        for name in ("form", "kind"):
            if _is_model(model) and name in model.model_fields:
                tags = get_args(model.model_fields[name].annotation)
                if len(tags) == 1:  # a choice of several is a key as any other
                    members[tags[0]] = model
    return members
