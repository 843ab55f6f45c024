"""``ModelStatus``: the state of a model in memory, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_gemma_jax.charts import bars, table
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State


@dataclass(frozen=True)
class ModelStatus:
    """The status of one of the engine's models. ``engine().models()`` lists them."""

    name: str
    state: State
    weights: int  # bytes on the device, encoders and adapters included; 0 unless it is loaded, or being loaded
    kv: int  # bytes of its conversations there
    workspace: int  # bytes that its programs need while they run
    host_kv: int  # bytes of its conversations in host memory
    leases: int  # requests and ``hold``s that use it
    idle_s: float  # seconds since it was used; 0 while it is in use
    pinned: bool
    keep_alive: float | None
    load_s: float  # seconds of the last load
    read_s: float  # seconds to read a token of a prompt; 0: not measured yet
    devices: int = 1  # the number of devices that it is divided among; bytes are for each
    chosen: str = ""  # the reason for that number
    not_mapped: str = ""  # why its weights are in memory of this process's own; "": they are in a mapped file
    adapters: tuple[str, ...] = ()  # the names of those on the device
    reserved: int = 0  # bytes that its conversations may always take, used or not: a whole pool, where that is there

    @property
    def resident(self) -> bool:
        return self.state is State.RESIDENT

    @property
    def nbytes(self) -> int:
        """The bytes that the model takes on the device, with those that are reserved for its conversations."""
        return self.weights + max(self.kv, self.reserved) + self.workspace

    def _repr_html_(self) -> str:
        """Return the status for a notebook: where the memory goes, and who uses it."""
        memory = {"weights": self.weights, "KV": self.kv, "workspace": self.workspace, "KV on the host": self.host_kv}
        stays = "until memory is needed" if self.keep_alive is None else f"{self.keep_alive:g} s unused"
        rows = [
            ("state", str(self.state.value)),
            ("used by", f"{self.leases} now" if self.leases else f"none for {self.idle_s:.0f} s"),
            ("stays", "always: pinned" if self.pinned else stays),
            ("devices", f"{self.devices}{f', {self.chosen}' if self.chosen else ''}"),
            ("last load", f"{self.load_s:.2f} s"),
        ]
        chart = bars(self.name, memory, {name: show_bytes(size) for name, size in memory.items()})
        return f"<div>{chart}{table(rows)}</div>"

    def __str__(self) -> str:
        if self.state is State.ABSENT:
            return f"{self.name}: not in memory" + (
                f", {show_bytes(self.host_kv)} of KV on the host" * bool(self.host_kv)
            )
        use = f"in use by {self.leases}" if self.leases else f"idle for {self.idle_s:.0f} s"
        if self.state is State.LOADING:
            use = "being loaded"
        where = f"on {self.devices} device{'s' * (self.devices > 1)} ({self.chosen or 'as loaded'}), each "
        if self.devices == 1 and not self.chosen:
            where = ""
        return (
            f"{self.name}: {where}{show_bytes(self.weights)} weights, {show_bytes(self.kv)} KV, "
            f"{show_bytes(self.workspace)} workspace, {use}{', pinned' * self.pinned}"
            + (f", adapters {', '.join(self.adapters)}" if self.adapters else "")
        )


@dataclass(frozen=True)
class KvView:
    """The bytes of conversations, as the owner thread last published them."""

    total: int = 0
    by_scope: tuple[tuple[str, int], ...] = ()


def status_of(entry: LedgerEntry, now: float) -> ModelStatus:
    """Return a model's status at ``now``."""
    there = entry.state is not State.ABSENT
    return ModelStatus(
        name=entry.name,
        state=entry.state,
        weights=entry.weights + entry.extra_bytes if there else 0,
        kv=entry.seen_kv,
        workspace=entry.workspace if there else 0,
        host_kv=entry.seen_host_kv,
        leases=entry.leases,
        idle_s=0.0 if entry.leases or not there else max(0.0, now - entry.last_used),
        pinned=entry.pinned,
        keep_alive=entry.keep_alive,
        load_s=entry.load_s,
        read_s=entry.seen_read_s,
        devices=entry.devices,
        chosen=entry.chosen,
        not_mapped=entry.not_mapped if there else "",
        adapters=entry.adapters if there else (),
        reserved=entry.floor if there else 0,
    )


def who_holds_what(statuses: Iterable[ModelStatus]) -> str:
    """Return a text, for errors, with everything that takes memory."""
    found = [str(status) for status in statuses if status.state is not State.ABSENT]
    return "; ".join(found) if found else "no model is there"
