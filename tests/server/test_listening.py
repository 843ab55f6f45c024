"""Where a server may listen, and what is said where it may not."""

from __future__ import annotations

import socket
import stat

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.server.http.listening import LONGEST, is_loopback, listen_at_port, listen_at_socket


def test_the_socket_is_this_users_alone_and_goes_with_its_server(tmp_path):
    place = tmp_path / "own" / "engine.sock"
    listening = listen_at_socket(place)
    assert listening.shown == f"unix:{place}"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    listening.close()
    listening.close()
    assert list(place.parent.iterdir()) == []


def test_a_live_server_keeps_its_socket(tmp_path):
    place = tmp_path / "engine.sock"
    listening = listen_at_socket(place)
    with pytest.raises(InputError, match=r"listens at .* already. Use it: ChatGemmaJax\(server='unix:"):
        listen_at_socket(place)
    listening.close()
    with socket.socket(socket.AF_UNIX) as other:  # of a program that knows no locks
        other.bind(str(place))
        other.listen()
        with pytest.raises(InputError, match="already"):
            listen_at_socket(place)
        assert place.exists()


def test_what_a_dead_server_left_is_replaced(tmp_path):
    place = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    (tmp_path / "engine.sock.lock").touch(0o600)
    listening = listen_at_socket(place)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
    listening.close()


def test_places_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=f"has at most {LONGEST}. Name a shorter one"):
        listen_at_socket(tmp_path / ("x" * 120))
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(InputError, match=r"can be written to by others .* Name a socket in a folder of your own"):
        listen_at_socket(shared / "engine.sock")
    file = tmp_path / "engine.sock"
    file.write_text("somebody's")
    with pytest.raises(InputError, match="is no socket of yours"):
        listen_at_socket(file)
    assert file.read_text() == "somebody's"
    (tmp_path / "link.sock").symlink_to(file)
    with pytest.raises(InputError, match="is no socket of yours"):
        listen_at_socket(tmp_path / "link.sock")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["engine.sock", "link.sock", "shared"]


def test_ports():
    listening = listen_at_port("127.0.0.1", 0)
    port = int(listening.shown.rpartition(":")[2])
    with pytest.raises(InputError, match=f"--port: {port} of 127.0.0.1 is in use"):
        listen_at_port("127.0.0.1", port)
    listening.close()


def test_loopback():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "::", "192.168.1.1", "localhost.example", "example")))
