"""A store as Ollama keeps it, for tests."""

from __future__ import annotations

import hashlib
import json

KIND = "application/vnd.ollama.image."


class Store:
    """A store as Ollama keeps it."""

    def __init__(self, root):
        self.root = root
        (root / "blobs").mkdir(parents=True)

    def blob(self, content: bytes):
        digest = hashlib.sha256(content).hexdigest()
        (self.root / "blobs" / f"sha256-{digest}").write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def add(self, where: str, model: bytes, **others: bytes):
        layers = [{"mediaType": f"{KIND}model", **self.blob(model)}]
        layers += [{"mediaType": f"{KIND}{name}", **self.blob(content)} for name, content in others.items()]
        path = self.root / "manifests" / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
        return path, self.root / "blobs" / layers[0]["digest"].replace(":", "-")
