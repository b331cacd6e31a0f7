"""What the site has beside docs/: CONTRIBUTING.md and CHANGELOG.md as pages, and links to other files of the repository
as their names. MkDocs calls these functions when it builds the site (``mkdocs.yml``)."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}  #: file → its page
OUTPUT = re.compile(r'(<span class="go">[^<]*)</span>\n')
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the files beside docs/."""
    top = Path(config.docs_dir).parent
    for name, page in BESIDE.items():
        text = (top / name).read_text("utf-8").replace("](docs/", "](")
        for other, its_page in BESIDE.items():
            text = text.replace(f"]({other}", f"]({its_page}")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs'
    """Rank the known failures first in the search. A link out of docs/ leads to that file's page, or is its name."""
    if page.file.src_uri.startswith("failures/"):
        page.meta["search"] = {"boost": 2}  # words of a message are on many pages, and its cause is on these
    depth = page.file.src_uri.count("/")

    def led(match: re.Match[str]) -> str:
        text, up, path, anchor = match.groups()
        if up.count("../") <= depth:
            return match[0]  # it stays in docs/
        if path in BESIDE:
            return f"[{text}]({'../' * depth}{BESIDE[path]}{anchor or ''})"
        return f"{text} (`{path}`)"

    return LINK.sub(led, markdown)


def on_page_content(html: str, **_: object) -> str:
    """A line of output ends within its element: what is hidden while a block is copied leaves no empty line."""
    return OUTPUT.sub(r"\1\n</span>", html)
