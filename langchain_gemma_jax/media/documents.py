"""Documents as pictures of their pages, drawn by PDFium."""

from __future__ import annotations

import threading

import numpy as np

from langchain_gemma_jax.errors import InstallationError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.medium import Picture

LONGER_SIDE = 1_536  # pixels of a page: text of the usual size can be read
_DRAWING = threading.Lock()  # PDFium is for one thread at a time


def looks_like_document(data: bytes) -> bool:
    """Whether some bytes begin as a PDF does."""
    return b"%PDF-" in data[:1024]


def read_document(data: bytes, most_pages: int, at: str) -> tuple[Picture, ...]:
    """Return the pages of a PDF.

    Raises:
        UnreadableMediaError: it is none, or has a password; MediaLimitError: it has too many pages;
        InstallationError: pypdfium2 is not installed.
    """
    try:
        import pypdfium2
    except (ImportError, OSError) as error:
        raise InstallationError(
            f"{at}: the pages of a PDF are drawn by pypdfium2, which is not installed: pip install "
            "'langchain-gemma-jax[pdf]'. Or give its pages as images."
        ) from error
    with _DRAWING:
        try:
            document = pypdfium2.PdfDocument(data)
        except Exception as error:  # what a decoder raises for broken bytes can be anything
            raise UnreadableMediaError(at, f"the PDF is broken, or has a password: {str(error)[:100]}") from error
        try:
            _check_pages(len(document), most_pages, at)
            pages = tuple(_drawn(document[number]) for number in range(len(document)))
        except MediaError:
            raise
        except Exception as error:
            raise UnreadableMediaError(at, f"a page of the PDF cannot be drawn: {str(error)[:100]}") from error
        finally:
            document.close()
    if not pages:
        raise UnreadableMediaError(at, "the PDF has no pages")
    return pages


def _check_pages(count: int, most: int, at: str) -> None:
    if count > most:
        raise MediaLimitError(
            at, f"a document of {count:,} pages has more than the {most} that may be. Give those that matter", "pages"
        )


def _drawn(page: object) -> Picture:
    width, height = page.get_size()  # type: ignore[attr-defined]
    scale = LONGER_SIDE / max(width, height, 1.0)
    bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)  # type: ignore[attr-defined]
    pixels = np.array(bitmap.to_numpy())
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    pixels = np.ascontiguousarray(pixels[:, :, :3])
    bitmap.close()
    page.close()  # type: ignore[attr-defined]
    pixels.setflags(write=False)
    return Picture(pixels)
