"""Images, sounds and documents in messages, as decoded values: where their bytes come from, and what is in them.

    block = media_block({"type": "image", "base64": "..."}, "messages[0].content[1]")
    (picture,) = MediaReader(MediaAccess(), MediaLimits()).read(block)

``block_forms.py`` reads the forms of LangChain, OpenAI, Anthropic and others, ``allowed_files.py`` and
``web_links.py`` get bytes where that is allowed, and the rest decodes. All input is hostile until it has been
checked: sizes are read from headers, before anything is decoded. Plain Python and NumPy, run by the caller's thread;
Pillow and the other decoders are imported where they are used. The room may import ``errors`` alone.
"""
