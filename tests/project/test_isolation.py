import os
import socket

import pytest

from recollect.settings import Settings
from tests.conftest import KEPT


def test_no_key_and_no_setting_reaches_a_test() -> None:
    names = {name.upper() for name in Settings.model_fields} - KEPT

    assert not names & set(os.environ)
    assert not [name for name in os.environ if name.endswith("_API_KEY")]


@pytest.mark.parametrize("address", [("1.1.1.1", 443), ("2606:4700:4700::1111", 443)])
def test_a_public_address_cannot_be_reached(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as client, pytest.raises(RuntimeError, match="tried to reach"):
        client.connect(address)


def test_loopback_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as client:
        assert client.getpeername() == server.getsockname()
