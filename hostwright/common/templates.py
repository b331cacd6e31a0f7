"""Renders the Jinja templates of roles (``templates/<role>/*.j2``) to plain text.

Nothing is escaped, since the result is the exact content of a file on a host. An undefined name is an error. Jinja2 is
imported on first use, because many verbs render no template.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import hostwright
from hostwright.common.errors import InputError
from hostwright.common.input.yamlfile import read_text

if TYPE_CHECKING:
    from jinja2 import Environment, UndefinedError

STANDARD = Path(hostwright.__file__).parent / "standard" / "templates"
_DEEP = "is nested too deeply"


@lru_cache(maxsize=8)
def _environment(folders: tuple[Path, ...]) -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - the texts are shell and configuration files, not HTML
    )


def render(name: str, folders: Sequence[Path] = (STANDARD,), /, **values: object) -> str:
    """Render the template ``name`` (``base/unattended.conf.j2``) from the first of ``folders`` that contains it.

    Raises ``InputError``, with file and line, for a missing template, a syntax error or an undefined name.
    """
    import jinja2

    try:
        return _environment(tuple(folders)).get_template(name).render(values)
    except RecursionError as error:
        raise InputError(_DEEP, f"templates/{name}") from error
    except jinja2.TemplateNotFound as error:
        raise InputError("there is no such template", f"templates/{name}") from error
    except jinja2.TemplateSyntaxError as error:
        raise InputError(str(error.message), f"templates/{error.name or name}:{error.lineno}") from error
    except jinja2.UndefinedError as error:
        raise InputError(f"{error.message}; the role must pass it to render()", _place(error, name, folders)) from error


def _place(error: UndefinedError, name: str, folders: Sequence[Path]) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for folder in folders:
            if Path(frame.filename).is_relative_to(folder):
                return f"templates/{Path(frame.filename).relative_to(folder)}:{frame.lineno}"
    return f"templates/{name}"


def mistakes_in(folder: Path) -> Iterator[InputError]:
    """Yield the syntax errors in all templates (``*.j2``) of ``folder``."""
    import jinja2

    for file in sorted(folder.rglob("*.j2")):
        try:
            _environment((folder,)).parse(read_text(file))
        except InputError as error:
            yield error
        except RecursionError:
            yield InputError(_DEEP, f"templates/{file.relative_to(folder)}")
        except jinja2.TemplateSyntaxError as error:
            yield InputError(str(error.message), f"templates/{file.relative_to(folder)}:{error.lineno}")
