import pytest

from memory.stores.mongo import open_mongo_documents
from tests.contracts.documents.conftest import Backend, MongoDatabase
from tests.contracts.documents.conversations import ConversationsContract
from tests.contracts.documents.facts import FactsContract
from tests.contracts.documents.threads import ThreadsContract
from tests.contracts.documents.updates import UpdatesContract


class Mongo:
    @pytest.fixture
    def backend(self, mongo_database: MongoDatabase) -> Backend:
        return lambda: open_mongo_documents(mongo_database.url, mongo_database.name)


class TestConversations(Mongo, ConversationsContract):
    more_than_a_batch = 110


class TestUpdates(Mongo, UpdatesContract):
    pass


class TestFacts(Mongo, FactsContract):
    pass


class TestThreads(Mongo, ThreadsContract):
    pass
