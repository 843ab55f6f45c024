"""The headers of images, next to what Pillow reads; and images whose beginning lies."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import UnreadableMediaError
from langchain_gemma_jax.media.picture_headers import KINDS, looks_like_picture, picture_header
from tests.media.samples import encoded, pdf, pixels, png, wav

AT = "messages[0].content[0]"
WAYS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True, "exif": b"Exif\0\0" + b"\0" * 5000, "comment": b"c" * 300}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("WEBP", {"exif": b"Exif\0\0"}),
    ("GIF", {}),
    ("BMP", {}),
]


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_the_size_is_the_one_that_is_decoded(kind, how):
    for height, width in ((1, 1), (1, 300), (77, 5), (128, 257)):
        data = encoded(kind, pixels(height, width), **how)
        assert picture_header(data, AT) == (kind, width, height)
        assert looks_like_picture(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "found nothing"),
        (b"hello", "begin with b'hello'"),
        (pdf(), 'type "file"'),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"II*\0" + b"\0" * 99, "found TIFF, which is not read"),
        (b"MM\0*" + b"\0" * 99, "found TIFF, which is not read"),
        (b"\0\0\0 ftypavif" + b"\0" * 99, "found AVIF, which is not read"),
        (b"\0\0\0 ftypheic" + b"\0" * 99, "found HEIF or another of its family"),
        (b"8BPS" + b"\0" * 99, "begin with"),  # Photoshop's
        (wav(pixels()[0, :, 0] / 300), "begin with"),
        (png(0, 5, b""), "broken or truncated"),
        (png()[:20], "broken or truncated"),
        (b"\xff\xd8\xff", "broken or truncated"),
        (b"\xff\xd8\xff" + b"\xff" * 50, "broken or truncated"),
        (b"RIFF\0\0\0\0WEBPVP8X", "broken or truncated"),
        (b"RIFF\0\0\0\0WEBPNONE" + b"\0" * 40, "broken or truncated"),
        (b"GIF89a", "broken or truncated"),
        (b"BM" + b"\0" * 9, "broken or truncated"),
    ],
)
def test_what_is_no_image(data, said):
    with pytest.raises(UnreadableMediaError) as found:
        picture_header(data, AT)
    assert said in str(found.value)
    assert str(found.value).startswith(AT)


def test_every_beginning_of_an_image_is_refused_or_says_its_size():
    for kind in KINDS:
        data = encoded(kind)
        for length in range(min(len(data), 400)):
            try:
                assert picture_header(data[:length], AT)[0] == kind
            except UnreadableMediaError:
                continue
