"""Templates: the users' texts in ``templates/<role>/*.j2``, rendered as plain values.

The result is the exact content of a file on a host, so nothing is escaped and no name may be left undefined.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound, UndefinedError
from jinja2 import TemplateSyntaxError as SyntaxMistake

from hostwright.common.errors import InputError

FOLDER = Path(__file__).resolve().parents[2] / "templates"


@lru_cache(maxsize=4)
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - the texts are shell and configuration files, not HTML
    )


def render(name: str, /, *, folder: Path = FOLDER, **values: object) -> str:
    """The text of template ``name`` (``environment/cuda.sh.j2``) with these values.

    A missing template, a mistake in it, or a name in it that has no value is an ``InputError`` that says where.
    """
    try:
        return _environment(folder).get_template(name).render(values)
    except TemplateNotFound as error:
        raise InputError("there is no such template", f"templates/{name}") from error
    except SyntaxMistake as error:
        raise InputError(str(error.message), f"templates/{error.name or name}:{error.lineno}") from error
    except UndefinedError as error:
        raise InputError(f"{error.message}; the role must pass it to render()", f"templates/{name}") from error
