"""Makes documents to upload: PDF, DOCX, and malicious ones."""

import io
import zipfile
from collections.abc import Mapping, Sequence

import pypdf

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_MACROS = "application/vnd.ms-office.vbaProject"
HEADER = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'


def pdf(*pages: str) -> bytes:
    """Return a PDF whose pages say these lines, in plain ASCII without parentheses."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    places = [4 + 2 * number for number in range(len(pages))]
    objects[1] = f"<</Type/Pages/Kids[{' '.join(f'{place} 0 R' for place in places)}]/Count {len(pages)}>>".encode()
    for place, text in zip(places, pages, strict=True):
        shown = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        fonts = "/Resources<</Font<</F1 3 0 R>>>>"
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {place + 1} 0 R{fonts}>>"
        objects += [page.encode(), f"<</Length {len(shown)}>>\nstream\n".encode() + shown + b"\nendstream"]
    return _as_pdf(objects)


def _as_pdf(objects: Sequence[bytes]) -> bytes:
    body, places = b"%PDF-1.4\n", list[int]()
    for number, said in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n".encode() + said + b"\nendobj\n"
    table = b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    size = len(objects) + 1
    start = f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    end = f"trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF".encode()
    return body + start + table + end


def encrypted_pdf(text: str) -> bytes:
    """Return a PDF that needs a password."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(text)))
    writer.encrypt("secret")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def docx(
    *paragraphs: str,
    more: Mapping[str, bytes] | None = None,
    head: str = HEADER,
    encoding: str = "utf-8",
    main: str = "word/document.xml",
    macros: str | None = None,
) -> bytes:
    """Return a DOCX with these paragraphs.

    `more` are further parts, `main` is the main part's name and `head` its beginning, `encoding` applies to every part,
    and `macros` names a part that is listed as holding macros.
    """
    said = "".join(f"<w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p>" for paragraph in paragraphs)
    document = f'<w:document xmlns:w="{_WORD}"><w:body>{said}</w:body></w:document>'
    types = {f"/{main}": _MAIN} | ({f"/{macros}": _MACROS} if macros else {})
    listed = "".join(f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in types.items())
    parts = {
        "[Content_Types].xml": f'{HEADER}<Types xmlns="{_TYPES}">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>',
        "_rels/.rels": f'{HEADER}<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="rId1" Type="{_OFFICE}" Target="{main}"/></Relationships>',
        "word/document.xml": HEADER + document,
        main: head + document,
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text.replace("UTF-8", encoding.upper()).encode(encoding))
        for name, data in (more or {}).items():
            archive.writestr(name, data)
    return written.getvalue()
