"""The page's part of the server: its document, its files, and the activity that it reads."""

from __future__ import annotations

from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.server.apis.caller import Caller, ServedModels
from langchain_gemma_jax.server.browser.activity import LiveActivity
from langchain_gemma_jax.server.browser.static_files import HOME, send_file, static_files, wants_page
from langchain_gemma_jax.server.http.exchange import Exchange

ACTIVITY = "/activity"


class BrowserPage:
    """Answers what a browser asks by GET."""

    def __init__(self, models: ServedModels) -> None:
        self._activity, self._files = LiveActivity(models), static_files()

    def is_open(self, exchange: Exchange) -> bool:
        """Return True for what needs no key: the files of the page, which hold no user's data."""
        path = exchange.path or HOME
        return path in self._files and (path != HOME or wants_page(exchange.headers))

    def has(self, exchange: Exchange) -> bool:
        """Return True if a request is one of the page's."""
        return exchange.path in {"", ACTIVITY} or self.is_open(exchange)

    async def answer(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one of the page's requests."""
        if exchange.path == "":  # mounted at a path, and asked without a slash behind it: addresses would be another's
            await exchange.answer({}, 308, {"location": exchange.mounted_at + HOME})
        elif exchange.path == ACTIVITY:
            await exchange.answer(
                await in_thread(self._activity.now, caller.scope), headers={"cache-control": "no-store"}
            )
        else:
            await send_file(exchange, self._files[exchange.path])
