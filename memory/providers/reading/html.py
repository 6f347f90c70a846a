"""Reads HTML by Beautiful Soup's own parser and markdownify. It fetches no links."""

from typing import BinaryIO

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

from recollect.memory.providers.reading.limits import ReadingLimits

IMPORTS_LATER: tuple[str, ...] = ()
_DROPPED = (
    *("title", "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math", "canvas", "head"),
    *("img", "picture", "video", "audio", "input", "button", "select", "textarea"),
)
_FOLLOWED = ("http:", "https:", "mailto:")


def read(file: BinaryIO, limits: ReadingLimits) -> tuple[list[str], str | None]:
    """Return the text as one page of Markdown, and the page's title."""
    text, title = html_to_markdown(file.read())
    return [text], title


def html_to_markdown(html: str | bytes) -> tuple[str, str | None]:
    """Return a page's Markdown, without scripts, styles and pictures, and its title."""
    soup = BeautifulSoup(html, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title is not None else None
    for element in soup.find_all(_DROPPED):
        element.decompose()
    for link in soup.find_all("a"):
        if not str(link.get("href", "")).lower().startswith(_FOLLOWED):
            link.unwrap()
    return MarkdownConverter(heading_style="ATX").convert_soup(soup), title
