"""Questions about a folder of texts, found by EmbeddingGemma. Vectors are made once, and kept.

hf download google/embeddinggemma-300m --local-dir embeddinggemma-300m
python examples/recipes/rag.py "When does the pool open?" docs/
"""

import sys
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_gemma_jax import ChatGemmaJax, GemmaJaxEmbeddings

RULES = "The library opens at nine.\n\nThe pool opens at seven. Children swim with an adult.\n\nBikes go to the cellar."
question, folder = (*sys.argv[1:], *("When does the pool open?", "rules")[len(sys.argv) - 1 :])
if not sys.argv[1:] and not Path(folder).exists():  # one to try
    Path(folder).mkdir()
    Path(folder, "house.md").write_text(RULES)
embeddings, kept = GemmaJaxEmbeddings(model="./embeddinggemma-300m"), Path(folder, "vectors.json")
if kept.exists():
    store = InMemoryVectorStore.load(str(kept), embeddings)
else:
    files = sorted(Path(folder).glob("**/*.md"))
    parts = [Document(part, metadata={"from": str(file)}) for file in files for part in file.read_text().split("\n\n")]
    store = InMemoryVectorStore.from_documents(parts, embeddings)
    store.dump(str(kept))
found = store.similarity_search(question, k=3)
facts = "\n".join(each.page_content for each in found)
llm = ChatGemmaJax(model="sprout-m", temperature=0, max_tokens=100)
print(llm.invoke([("system", f"Answer from these facts alone:\n{facts}"), ("human", question)]).text)
print("from:", {each.metadata["from"] for each in found})
