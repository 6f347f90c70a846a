"""Documents over HTTP: every kind, every limit, and what a service makes of files that mean harm."""

import io
import time
import zipfile
from pathlib import Path

import pytest

from tests.service.support import papers
from tests.service.support.documents_of import FIELDS, add, checked, refusal, search, upload
from tests.service.support.running import Service, service

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML = b"""<!DOCTYPE html><html><head><title>The lighthouse</title><style>p { color: red }</style></head>
<body><script>alert("evil")</script><h1>Opening hours</h1><p>The lighthouse opens at <b>nine</b>.</p>
<a href="javascript:alert(1)">press</a> <a href="https://example.org/x">more</a><img src="http://10.0.0.1/x.png">
</body></html>"""
ENTITIES = papers.HEADER + '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


def zipped(name: str, data: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return written.getvalue()


def test_a_text_is_added_listed_read_and_deleted(offline: Service, user: str) -> None:
    made = add(offline, user, "Tea is served at four.", title="Rules", domain="home", source="r", metadata={"a.b": [1]})
    assert (made["status"], made["progress"], made["error"], made["kind"]) == ("done", 1.0, None, "text")
    assert (made["user_id"], made["scope"], made["title"], made["domain"]) == (user, "user", "Rules", "home")
    assert (made["source"], made["metadata"], made["passages"], made["pages"]) == ("r", {"a.b": [1]}, 1, None)
    path, of_user = f"/api/documents/{made['id']}", {"user_id": user}
    assert offline.get(path, **of_user) == made
    assert offline.get("/api/documents", **of_user) == {"items": [made], "next_cursor": None}
    assert offline.get("/api/documents", **of_user, domain="other")["items"] == []
    for method in ("GET", "DELETE"):
        foreign = offline.http.request(method, path, params={"user_id": f"{user}-other"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "not_found")
    assert offline.http.get("/api/documents/nothing", params=of_user).status_code == 404
    assert len(search(offline, user, "tea")) == 1
    gone = offline.http.delete(path, params=of_user)
    assert (gone.status_code, gone.content) == (204, b"")
    assert offline.http.get(path, params=of_user).status_code == 404
    assert offline.http.delete(path, params=of_user).status_code == 404
    assert search(offline, user, "tea") == []


def test_lists_are_newest_first_and_paged(offline: Service, user: str) -> None:
    made = [add(offline, user, f"Text number {number}.", domain=f"d{number % 2}")["id"] for number in range(5)]
    seen, cursor = list[str](), None
    while True:
        query = {"user_id": user, "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = offline.get("/api/documents", **query)
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(made)
    assert [item["id"] for item in offline.get("/api/documents", user_id=user, domain="d1")["items"]] == [
        each for each in seen if each in (made[1], made[3])
    ]
    bad = offline.http.get("/api/documents", params={"user_id": user, "cursor": "eA"})
    assert bad.json()["error"]["details"] == [{"field": "cursor", "problem": "is not a cursor"}]


SAID = "The lighthouse opens at nine."
READ = {
    "text": ("a.txt", b"\xef\xbb\xbf" + SAID.encode(), "text/plain", "text", SAID),
    "utf-16": ("a.txt", "The lighthouse: neun Uhr früh.".encode("utf-16"), "", "text", "neun Uhr früh."),
    "markdown": ("a.MD", f"# Hours\n\n{SAID}".encode(), "", "markdown", f"# Hours\n\n{SAID}"),
    "markdown by type": ("upload", SAID.encode(), "text/markdown; charset=utf-8", "markdown", SAID),
    "html": ("a.html", HTML, "text/html", "html", "# Opening hours\n\nThe lighthouse opens at **nine**."),
    "pdf": ("a.pdf", papers.pdf(SAID), "application/pdf", "pdf", SAID),
    "pdf by bytes": ("blob", papers.pdf(SAID), "application/octet-stream", "pdf", SAID),
    "docx": ("a.docx", papers.docx("Hours", SAID), WORD, "docx", f"Hours\n\n{SAID}"),
}


@pytest.mark.parametrize("how", READ)
def test_every_kind_is_read(offline: Service, user: str, how: str) -> None:
    name, data, media, kind, said = READ[how]
    answer = upload(offline, user, name, data, media=media, domain="sea", metadata='{"a": 1}')
    assert answer.status_code == 201, answer.text
    made = checked(answer)
    assert (made["kind"], made["domain"], made["metadata"]) == (kind, "sea", {"a": 1})
    assert made["title"] == ("The lighthouse" if kind == "html" else name)
    (hit,) = search(offline, user, "When does the lighthouse open?")
    assert said in hit["content"]
    assert not any(word in hit["content"] for word in ("alert", "color", "10.0.0.1", "javascript"))


def test_a_pdf_keeps_its_pages(offline: Service, user: str) -> None:
    data = papers.pdf("The lighthouse opens at nine.", "", "The harbour closes at ten.")
    made = checked(upload(offline, user, "port.pdf", data, source="file:port"))
    assert made["pages"] == 3
    (hit,) = search(offline, user, "harbour", top_k=1)
    assert hit["document"] == {
        "id": made["id"],
        "title": "port.pdf",
        "domain": None,
        "source": "file:port",
        "page": 3,
    }


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.pdf", b"%PDF-1.7 and nothing else", "damaged"),
        ("a.pdf", b"nothing like it", "no PDF"),
        ("a.pdf", papers.pdf("secret").replace(b"endobj", b"", 3)[:400], "damaged"),
        ("a.pdf", papers.encrypted_pdf("secret"), "encrypted"),
        ("a.pdf", papers.pdf("", ""), "no text"),
        ("a.pdf", papers.pdf(*["x"] * 501), "501 pages"),
        ("a.docx", papers.docx("x", more={"word/vbaProject.bin": b"x"}), "macros"),
        ("a.docm", papers.docx("x", more={"word/vbaProject.bin": b"x"}), "macros"),
        ("a.docx", papers.docx("x", more={"word/media/a.bin": bytes(120_000_000)}), "100 MB"),
        ("a.docx", papers.docx("&b;", head=ENTITIES), "entities"),
        ("a.docx", papers.docx("&b;", head=ENTITIES, encoding="utf-16"), "entities"),
        ("a.docx", papers.docx("&b;", head=ENTITIES, main="word/document.bin"), "entities"),
        ("a.docx", papers.docx("x", more={"customXml/item.XML": b"<!DOCTYPE x SYSTEM 'y'><x/>"}), "entities"),
        ("a.docx", papers.docx("x", macros="word/harmless.xml", encoding="utf-16"), "macros"),
        ("a.docx", papers.docx(), "no text"),
        ("a.docx", zipped("xl/workbook.xml", b"<x/>"), "no DOCX"),
        ("a.docx", papers.docx("Hello")[:-40], "damaged"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted"),
        ("a.html", b"<div>" * 100_000 + b"deep", "nested"),
        ("a.html", b"<script>only()</script>", "no text"),
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n\t ", "no text"),
        ("a.txt", b"a\x00b", "no text"),
        ("a.txt", b"caf\xe9 au lait", "UTF-8"),
        ("a.md", b"PK\x03\x04 and so on", "no text"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    offline: Service, user: str, name: str, data: bytes, problem: str
) -> None:
    assert problem in refusal(upload(offline, user, name, data), 422, "unreadable_document")
    assert offline.get("/api/documents", user_id=user)["items"] == []
    assert offline.get("/health")["status"] == "ok"


@pytest.mark.parametrize(
    ("name", "media"),
    [
        ("a.png", "image/png"),
        ("a.zip", ""),
        ("a.doc", "application/msword"),
        ("a", "image/png"),
        ("a.exe", "text/plain"),
    ],
)
def test_other_kinds_are_not_read(offline: Service, user: str, name: str, media: str) -> None:
    refusal(upload(offline, user, name, b"some bytes", media=media), 415, "unsupported_media_type")


def test_a_body_that_is_no_document(offline: Service, user: str) -> None:
    post = offline.http.post
    plain = post("/api/documents", content=b"hello", headers={"content-type": "text/plain"})
    assert (plain.status_code, plain.json()["error"]["code"]) == (415, "unsupported_media_type")
    for body, field in (
        ({"user_id": user}, "text"),
        ({"user_id": user, "text": ""}, "text"),
        ({"user_id": user, "text": "a\x00b"}, "text"),
        ({"user_id": user, "text": "x", "txt": 1}, "txt"),
        ({"user_id": user, "text": "x", "domain": "d" * 65}, "domain"),
        ({"user_id": "no/id", "text": "x"}, "user_id"),
        ({"text": "x"}, "user_id"),
        ([1], "body"),
    ):
        answer = post("/api/documents", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request"), answer.text
        assert [each["field"] for each in answer.json()["error"]["details"]] == [field]
    broken = post("/api/documents", content=b"{", headers={"content-type": "application/json"})
    assert broken.status_code == 422
    cut = post("/api/documents", content=b"--x", headers={"content-type": "multipart/form-data; boundary=x"})
    assert cut.status_code == 422
    file = {"file": ("a.txt", b"x")}
    for data, field in (
        ({"user_id": user, "metadata": "{"}, "metadata"),
        ({"user_id": user, "metadata": "[1]"}, "metadata"),
        ({"user_id": user, "text": "and a file"}, "text"),
        ({"user_id": user, "more": "x"}, "more"),
    ):
        answer = post("/api/documents", data=data, files=file)
        assert answer.json()["error"]["details"][0]["field"] == field, answer.text
    other = post("/api/documents", data={"user_id": user}, files={"paper": ("a.txt", b"x")})
    assert other.json()["error"]["details"][0]["field"] == "paper"


def test_everybodys_documents_are_found_by_everyone(offline: Service, user: str) -> None:
    word = f"zz{user.replace('-', '')}"
    answer = offline.http.post("/api/documents", json={"scope": "global", "text": f"The {word} closes at six."})
    made = checked(answer)
    assert (made["scope"], made["user_id"]) == ("global", None)
    (hit,) = search(offline, user, word, top_k=1)
    assert hit["document"]["id"] == made["id"]
    assert offline.get(f"/api/documents/{made['id']}", user_id=user) == made
    assert made in offline.get("/api/documents", scope="global")["items"]
    assert offline.get("/api/documents", user_id=user)["items"] == []
    path = f"/api/documents/{made['id']}"
    assert offline.http.delete(path, params={"user_id": user}).status_code == 404
    assert offline.http.delete(path, params={"scope": "global"}).status_code == 204
    assert search(offline, user, word) == []


def test_threads_attach_and_detach(offline: Service, user: str) -> None:
    made = add(offline, user, "Tea is served at four.")
    path, of_user = f"/api/threads/new/documents/{made['id']}", {"user_id": user}
    first = offline.http.put(path, params=of_user)
    assert first.status_code == 200
    assert set(first.json()) == FIELDS | {"attached_at"}
    assert offline.http.put(path, params=of_user).json() == first.json()
    assert offline.get("/api/threads/new/documents", **of_user) == {"items": [first.json()], "next_cursor": None}
    foreign = offline.http.put(path, params={"user_id": f"{user}-other"})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "not_found")
    assert offline.http.put(f"/api/threads/t/documents/{user}", params=of_user).status_code == 404
    assert offline.http.delete(path, params=of_user).status_code == 204
    assert offline.http.delete(path, params=of_user).status_code == 404
    assert offline.get("/api/threads/new/documents", **of_user)["items"] == []
    assert offline.get(f"/api/documents/{made['id']}", **of_user) == made


def test_the_same_source_is_replaced_and_the_same_content_is_one(offline: Service, user: str) -> None:
    first = add(offline, user, "The lighthouse opens at nine.", source="hours", title="Old")
    second = add(offline, user, "The lighthouse opens at eight.", source="hours", title="New", domain="sea")
    assert second["id"] == first["id"]
    assert second["created_at"] == first["created_at"]
    assert [hit["content"] for hit in search(offline, user, "lighthouse")] == ["The lighthouse opens at eight."]
    third = add(offline, user, "No source, the same content.", title="One")
    fourth = add(offline, user, "No source, the same content.", title="Two")
    assert fourth["id"] == third["id"]
    items = offline.get("/api/documents", user_id=user)["items"]
    assert sorted(item["title"] for item in items) == ["New", "Two"]
    other = add(offline, f"{user}-b", "No source, the same content.")
    assert other["id"] != third["id"]


def test_limits_are_settings_and_the_service_answers_meanwhile(tmp_path: Path) -> None:
    limits = {
        "MAX_UPLOAD_MB": "1",
        "MAX_DOCUMENT_CHARACTERS": "1000",
        "MAX_DOCUMENT_PAGES": "2",
        "MAX_UNPACKED_MB": "1",
    }
    with service(tmp_path, **limits) as running:
        large = upload(running, "ada", "a.txt", b"x" * 1_100_000)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
        chunks = running.http.post(
            "/api/documents",
            content=(b"x" * 100_000 for _ in range(12)),
            headers={"content-type": "application/json"},
        )
        assert chunks.status_code == 413
        assert "1,000 characters" in refusal(upload(running, "ada", "a.txt", b"x" * 1_001), 422, "unreadable_document")
        text = running.http.post("/api/documents", json={"user_id": "ada", "text": "x " * 501})
        assert text.json()["error"]["details"][0]["field"] == "text"
        assert "3 pages" in refusal(
            upload(running, "ada", "a.pdf", papers.pdf("a", "b", "c")), 422, "unreadable_document"
        )
        bomb = papers.docx("x", more={"a.bin": bytes(1_100_000)})
        assert "1 MB" in refusal(upload(running, "ada", "a.docx", bomb), 422, "unreadable_document")
        started = time.monotonic()
        assert running.get("/health")["status"] == "ok"
        assert time.monotonic() - started < 1
        assert "Traceback" not in running.log
