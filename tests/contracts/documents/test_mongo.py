import pytest

from memory.stores.mongo import open_mongo_documents
from tests.contracts.documents.conftest import Backend, MongoDatabase
from tests.contracts.documents.conversations import ConversationsContract
from tests.contracts.documents.counts import CountsContract
from tests.contracts.documents.erasures import ErasuresContract
from tests.contracts.documents.fact_pages import FactPagesContract
from tests.contracts.documents.facts import FactsContract
from tests.contracts.documents.imports import ImportsContract
from tests.contracts.documents.kept_turns import KeptTurnsContract
from tests.contracts.documents.keys import KeysContract
from tests.contracts.documents.library import LibraryContract
from tests.contracts.documents.notes import NotesContract
from tests.contracts.documents.queue import QueueContract
from tests.contracts.documents.recommits import RecommitsContract
from tests.contracts.documents.thread_records import ThreadRecordsContract
from tests.contracts.documents.timeline import TimelineContract
from tests.contracts.documents.updates import UpdatesContract
from tests.contracts.documents.whole_user import WholeUserContract


class Mongo:
    @pytest.fixture
    def backend(self, mongo_database: MongoDatabase) -> Backend:
        return lambda: open_mongo_documents(mongo_database.url, mongo_database.name)


class TestConversations(Mongo, ConversationsContract):
    more_than_a_batch = 110


class TestUpdates(Mongo, UpdatesContract):
    longer_than_a_batch = 110


class TestFacts(Mongo, FactsContract):
    pass


class TestFactPages(Mongo, FactPagesContract):
    pass


class TestRecommits(Mongo, RecommitsContract):
    pass


class TestNotes(Mongo, NotesContract):
    pass


class TestCounts(Mongo, CountsContract):
    pass


class TestKeptTurns(Mongo, KeptTurnsContract):
    more_than_a_batch = 110


class TestTimeline(Mongo, TimelineContract):
    many = 500


class TestImports(Mongo, ImportsContract):
    many = 110


class TestThreadRecords(Mongo, ThreadRecordsContract):
    pass


class TestLibrary(Mongo, LibraryContract):
    pass


class TestQueue(Mongo, QueueContract):
    pass


class TestWholeUser(Mongo, WholeUserContract):
    more_than_a_batch = 110


class TestKeys(Mongo, KeysContract):
    pass


class TestErasures(Mongo, ErasuresContract):
    pass
