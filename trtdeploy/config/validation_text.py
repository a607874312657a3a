"""Turns pydantic's validation errors into one line each: file, dotted path, what to write."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trtdeploy.config.documents import KeyPath, MergedDocument, format_key_path
from trtdeploy.config.recipe import RECIPES, RecipeName
from trtdeploy.core.names import suggest_name

Model = TypeVar("Model", bound=BaseModel)

_EXPECTED = {
    "bool_type": "expected true or false",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "string_type": "expected text (numbers need quotes)",
    "tuple_type": "expected a list like [a, b]",
    "dict_type": "expected 'key: value' lines",
    "model_type": "expected 'key: value' lines",
    "model_attributes_type": "expected 'key: value' lines",
}


def validate_document(
    model: type[Model], merged: MergedDocument, label: str, extra: Mapping[str, object]
) -> tuple[Model | None, tuple[str, ...]]:
    """Build ``model`` from a document, or say everything that is wrong with it.

    Args:
        model: Configuration model.
        merged: Data and where each piece came from.
        label: File blamed for what is missing.
        extra: Fields that files do not set (the name).

    Returns:
        The model and no problems, or None and one line per problem.
    """
    reserved = [
        f"{_locate(merged, (key,), label)}: unknown key. It follows from the file's name."
        for key in extra
        if key in merged.data
    ]
    data = {key: value for key, value in merged.data.items() if key not in extra}
    try:
        value = model.model_validate({**data, **extra})
    except ValidationError as error:
        problems = [
            describe_problem(model, problem, merged, label)
            for problem in error.errors(include_url=False)
        ]
        return None, (*reserved, *problems)
    return (None if reserved else value), tuple(reserved)


def describe_problem(
    model: type[BaseModel], problem: ErrorDetails, merged: MergedDocument, label: str
) -> str:
    """Return ``orin-fp16.yaml: build.workspce: unknown key. Did you mean 'workspace'?``."""
    location = problem["loc"]
    bad_key = location[-1:] == ("[key]",)
    path: KeyPath = location[:-1] if bad_key else location
    place = _locate(merged if problem["type"] != "missing" else None, path, label)
    return f"{place}: {_explain(model, problem, path, bad_key)}".rstrip()


def _locate(merged: MergedDocument | None, path: KeyPath, label: str) -> str:
    origin = merged.find_origin(path) if merged else None
    return origin.locate(path) if origin else f"{label}: {format_key_path(path)}"


def _explain(model: type[BaseModel], problem: ErrorDetails, path: KeyPath, bad_key: bool) -> str:
    given = problem["input"]
    if bad_key:
        table = _find_annotation(model, path[:-1])
        return f"unknown key. {_suggest_value(get_args(table)[0], str(given))}"
    if problem["type"] == "extra_forbidden":
        return f"unknown key. {_suggest_key(model, path)}"
    if problem["type"] == "missing":
        return f"this key is required. {_suggest_value(_find_annotation(model, path))}"
    if problem["type"] == "literal_error":
        choices = _suggest_value(_find_annotation(model, path), str(given))
        return f"{given!r} is not known. {choices}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    return f"{_EXPECTED.get(problem['type']) or problem['msg']}, given {_shorten(given)}"


def _shorten(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _suggest_key(model: type[BaseModel], path: Sequence[str | int]) -> str:
    key = str(path[-1])
    elsewhere = [
        where for where in _list_key_paths(model) if where[-1] == key and where != tuple(path)
    ]
    if elsewhere:
        return f"It belongs at {format_key_path(elsewhere[0])!r}."
    section = _find_model(_find_annotation(model, path[:-1]))
    return suggest_name(key, section.model_fields if section else ())


def _suggest_value(annotation: Any, given: str = "") -> str:
    choices = [
        str(value)
        for option in _options(annotation)
        if get_origin(option) is Literal
        for value in get_args(option)
    ]
    if annotation is RecipeName:
        choices = list(RECIPES)
    return suggest_name(given, choices) if choices else ""


def _list_key_paths(model: type[BaseModel], depth: int = 3) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (name,)
        section = _find_model(field.annotation)
        if section is not None and depth > 1:
            for rest in _list_key_paths(section, depth - 1):
                yield (name, *rest)


def _find_annotation(model: type[BaseModel], path: Sequence[str | int]) -> Any:
    current: Any = model
    for part in path:
        current = _step_into(current, part)
    return current


def _step_into(annotation: Any, part: str | int) -> Any:
    for option in _options(annotation):
        if _is_model(option):
            field = option.model_fields.get(str(part))
            return field.annotation if field else None
        arguments = get_args(option)
        if get_origin(option) is dict:
            return arguments[1]
        if get_origin(option) is tuple:
            return arguments[0]
    return None


def _is_model(annotation: Any) -> bool:
    # Python 3.10 takes tuple[str, ...] for a type and then chokes on it.
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    return is_class and issubclass(annotation, BaseModel)


def _find_model(annotation: Any) -> type[BaseModel] | None:
    for option in _options(annotation):
        if _is_model(option):
            return cast("type[BaseModel]", option)
    return None


def _options(annotation: Any) -> Iterator[Any]:
    """Yield the alternatives of a type without ``Annotated`` and ``| None`` around them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for option in get_args(annotation):
            yield from _options(option)
    else:
        yield annotation
