"""HTTP/1.1 for a client of one request: bytes in, the lines of the body out. Nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_gemma_jax.errors import ServerError

LARGEST_HEAD = 64 * 1024  # bytes
LARGEST_LINE = 256 * 1024 * 1024  # bytes, of an answer
_LARGEST_SIZE_LINE = 256


def request(path: str, host: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a whole request."""
    fields = {
        "Host": host,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


class ResponseReader:
    """Reads a response piece by piece, wherever it was cut."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_whole = False
        self._waiting = bytearray()  # bytes that are not parsed yet
        self._line = bytearray()  # the beginning of a line of the body
        self._left = 0  # bytes that the body, or its current chunk, still has
        self._chunked = self._until_end = False
        self._between = False  # after a chunk, where a line's end has to follow

    def take(self, data: bytes) -> list[bytes]:
        """Take the next bytes, and return the lines of the body that they complete.

        Raises:
            ServerError: they are no HTTP response.
        """
        self._waiting += data
        found: list[bytes] = []
        while not self.status and self._take_head():
            pass
        while self.status and not self.is_whole and self._take_body(found):
            pass
        return found

    def rest(self) -> bytes:
        """Note the end of the connection, and return the bytes after the last whole line."""
        if self._until_end:
            self.is_whole = True
        return bytes(self._line)

    def _take_head(self) -> bool:
        """Read a head, if it has arrived whole. True: it was an interim one, and another follows."""
        end = self._waiting.find(b"\r\n\r\n")
        if end < 0:
            if len(self._waiting) > LARGEST_HEAD or not b"HTTP/1.".startswith(self._waiting[:7]):
                raise _no_http()
            return False
        first, *fields = bytes(self._waiting[:end]).decode("latin-1").split("\r\n")
        del self._waiting[: end + 4]
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise _no_http()
        headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
        self.headers, status = headers, int(words[1])
        if status < 200:  # such as 100 Continue, before the response itself
            return True
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        if not self._chunked and length is not None:
            if not length.isdecimal():
                raise _no_http()
            self._left = int(length)
            self.is_whole = not self._left
        self._until_end = not self._chunked and length is None
        self.status = status
        return False

    def _take_body(self, lines_read: list[bytes]) -> bool:
        """Read some of the body. False: more bytes have to arrive first."""
        if self._chunked and not self._left:
            return self._take_size()
        if not self._waiting:
            return False
        some = self._waiting if self._until_end else self._waiting[: self._left]
        taken = len(some)
        *lines, last = bytes(some).split(b"\n")
        for line in lines:
            lines_read.append(bytes(self._line) + line)
            self._line.clear()
        self._line += last
        if len(self._line) > LARGEST_LINE:
            raise ServerError(f"The server's answer has a line of more than {LARGEST_LINE} bytes.")
        del self._waiting[:taken]
        if not self._until_end:
            self._left -= taken
            self._between = self._chunked and not self._left
            self.is_whole = not self._chunked and not self._left
        return True

    def _take_size(self) -> bool:
        if self._between:
            if len(self._waiting) < 2:
                return False
            if self._waiting[:2] != b"\r\n":
                raise _no_http()
            del self._waiting[:2]
            self._between = False
        end = self._waiting.find(b"\r\n")
        if end < 0:
            if len(self._waiting) > _LARGEST_SIZE_LINE:
                raise _no_http()
            return False
        size = bytes(self._waiting[:end]).partition(b";")[0].strip()
        try:
            self._left = int(size, 16)
        except ValueError:
            raise _no_http() from None
        del self._waiting[: end + 2]
        self.is_whole = not self._left  # trailers, which may follow the last chunk, are not read
        return not self.is_whole


def _no_http() -> ServerError:
    return ServerError("What answers there speaks no HTTP, or something between broke it. Is it gemma-jax serve?")
