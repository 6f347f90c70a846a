"""Recognises a file's kind by its name and content type, and checks it against the first bytes."""

from pathlib import PurePath

from recollect.memory.ports.document_reader import unreadable
from recollect.memory.values.document import DocumentKind
from recollect.memory.values.errors import Problem, UnsupportedMedia

HEAD_BYTES = 4_096
"""Number of bytes at the beginning of a file that are checked."""

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_BY_ENDING: dict[str, DocumentKind] = {
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    # Word's files with macros are recognised, so that the refusal can name the macros.
    **dict.fromkeys((".docx", ".docm"), "docx"),
}
_BY_TYPE: dict[str, DocumentKind] = {
    "text/plain": "text",
    **dict.fromkeys(("text/markdown", "text/x-markdown"), "markdown"),
    **dict.fromkeys(("text/html", "application/xhtml+xml"), "html"),
    "application/pdf": "pdf",
    **dict.fromkeys((_WORD, "application/vnd.ms-word.document.macroenabled.12"), "docx"),
}
_ANYTHING = {"", "application/octet-stream", "binary/octet-stream"}
_ZIP, _OLE, _PDF = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"%PDF-"
_BYTE_ORDER = (b"\xff\xfe", b"\xfe\xff")
_PDF_WITHIN = 1_024


def kind_of_document(name: str | None, content_type: str | None, head: bytes) -> DocumentKind:
    """Return the kind of a file with this `name`, `content_type` and `head` (at most `HEAD_BYTES`).

    The name's ending counts more than the content type, which clients guess.

    Raises:
        UnsupportedMedia: neither names a kind that is read.
        UnreadableDocument: the bytes are of another kind than the name or the type says.
    """
    ending = PurePath(name or "").suffix.lower()
    media = (content_type or "").partition(";")[0].strip().lower()
    kind = _BY_ENDING.get(ending)
    if kind is None and not ending:
        kind = _BY_TYPE.get(media)
        if kind is None and media in _ANYTHING and _is_pdf(head):
            kind = "pdf"
    if kind is None:
        raise UnsupportedMedia(problems=[Problem("file", "is of a kind that is not read")])
    problem = _mismatch(kind, head)
    if problem is not None:
        raise unreadable(problem)
    return kind


def _mismatch(kind: DocumentKind, head: bytes) -> str | None:
    """Return why `head` cannot begin a file of this `kind`; None where it can."""
    if not head:
        return "is empty"
    if kind == "pdf":
        return None if _is_pdf(head) else "is no PDF"
    if kind == "docx":
        if head.startswith(_OLE):
            return "is encrypted, or of an older Word; save it as DOCX without a password"
        return None if head.startswith(_ZIP) else "is no DOCX"
    if head.startswith(_BYTE_ORDER):
        return None
    return "holds bytes that are no text" if b"\x00" in head or _is_pdf(head) or head.startswith(_ZIP) else None


def _is_pdf(head: bytes) -> bool:
    """Tell whether `head` has PDF's mark among its first 1,024 bytes, where readers accept it."""
    return _PDF in head[:_PDF_WITHIN]
