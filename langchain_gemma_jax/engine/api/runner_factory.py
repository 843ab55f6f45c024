"""Making a model's runner: its device, its conversations, the memory that it shares with others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from langchain_gemma_jax.config import prefix_folder
from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes
from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.ladders import Ladders, MediaLadder, TextLadder
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.base.settings import CurrentSettings, Settings
from langchain_gemma_jax.engine.conversations.disk_store import DiskStore
from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.kv_eviction import EvictionPolicy
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.kv_store import KvStore
from langchain_gemma_jax.engine.conversations.transfer_costs import SLOW_NETWORK, FetchCosts, TransferCosts
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.other_hosts import OtherHosts
from langchain_gemma_jax.engine.device.page_door import is_mapped
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.executables.fingerprint import family
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.prefix_store.kept_answers import KeptAnswers
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_store import ModelPrefixes, PrefixStore
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from langchain_gemma_jax.engine.residency.device_memory import host_kv_budget, idle_kv_budget, kv_budget
from langchain_gemma_jax.engine.residency.known_models import KnownModel, KnownModels
from langchain_gemma_jax.engine.residency.model_evictor import ModelEvictor
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.adapter_slots import AdapterSlots
from langchain_gemma_jax.engine.steps.media_encoding import MediaEncoding
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.private.key_file import read_key


@dataclass(frozen=True)
class _Stored:
    """A model's prefixes on the disk, as soon as it is known which they are."""

    files: Unchanged
    prefixes: ModelPrefixes
    answers: KeptAnswers | None  # None: tokens are not written, as nothing encrypts them


@dataclass(frozen=True)
class DeviceShare:
    """A model's share of its device's memory, which other models are in too."""

    evictor: ModelEvictor
    models: KnownModels
    known: KnownModel

    def room(self) -> int:
        return self.evictor.ledger.kv_room(self.known.entry)

    def more(self, missing: int) -> None:
        self.evictor.free(missing, self.known.entry)

    def others(self) -> list[KvStore]:
        # By what is served, not by runner: in a circle of references, weights stay until the next collection.
        served = self.known.served
        return [runner.kv_store for runner in self.models.others_at(served, served.model.placement)]

    def take_extra(self, nbytes: int) -> bool:
        """Have room for so many bytes of encoders or adapters: idle conversations go for it, then idle models."""
        ledger, entry = self.evictor.ledger, self.known.entry
        for give_up in (self._give_up_conversations, lambda missing: self.evictor.free(missing, entry)):
            if (missing := ledger.used(entry.home) + nbytes - ledger.budget(entry.home)) > 0:
                give_up(missing)
        if ledger.used(entry.home) + nbytes > ledger.budget(entry.home):
            return False
        entry.extra_bytes += nbytes
        return True

    def give_extra(self, nbytes: int) -> None:
        """Give room back that was taken."""
        self.known.entry.extra_bytes -= nbytes

    def told_of_adapters(self, names: tuple[str, ...]) -> None:
        """Note which adapters are on the device, for lists of models."""
        self.known.entry.adapters = names

    def _give_up_conversations(self, missing: int) -> None:
        for runner in self.models.running_at(self.known.entry.home):
            if missing > 0:
                missing -= runner.kv_store.give_up(missing)

    def gave_up(self, what: str, reason: str, nbytes: int, seconds: float) -> None:
        self.evictor.log.add(self.known.entry.name, what, reason, nbytes, seconds)


def program_keys(shape: Shape, ladders: Ladders, where: Placement) -> Iterator[ProgramKey]:
    """Yield every program that a model can ever be asked for."""
    if shape.architecture.embeds:
        yield from TextLadder.for_context(shape.max_context).program_keys()
        return
    yield from ladders.program_keys(moves_pages=not is_mapped(where))
    if shape.drafter is not None:
        yield from ladders.draft_keys()
    yield from media_ladder(shape, ladders).program_keys(ladders.capacities)


def media_ladder(shape: Shape, ladders: Ladders) -> MediaLadder:
    """Return the sizes in which a model's pictures and sounds are encoded and read."""
    encoders = shape.architecture.encoders
    return MediaLadder.of(ladders.chunks, [(each.sizes, *each.read_at_once) for each in encoders])


class RunnerFactory:
    """Makes runners for the models of one engine. Of each place there is one host memory, and one book of costs."""

    def __init__(
        self,
        models: KnownModels,
        evictor: ModelEvictor,
        metrics: Metrics,
        guards: Guards,
        settings: CurrentSettings,
        background: Background,
        prefixes: PrefixStore | None = None,
        others: OtherHosts | None = None,
    ) -> None:
        self._models, self._evictor, self._metrics = models, evictor, metrics
        self._guards, self._settings, self._background, self._others = guards, settings, background, others
        self._host_index = HostIndex(host_kv_budget(settings.now))
        self._costs: dict[Placement, TransferCosts] = {}
        self._prefixes, self._disk_costs = prefixes, FetchCosts()
        self._peer_costs = FetchCosts(SLOW_NETWORK)
        self._stored: WeakKeyDictionary[KnownModel, _Stored] = WeakKeyDictionary()

    def host_store(self, served: Served, where: Placement) -> HostStore:
        """A model's place in host memory."""
        costs = self._costs.setdefault(where, TransferCosts())
        parts = len(where.devices)
        return HostStore(served, self._host_index, costs, self._metrics, parts=parts, usable=where.here)

    def runner(self, known: KnownModel, library: Library) -> Runner:
        """Make a model's runner: everything that belongs to the model on its device. Runs on the owner thread."""
        settings, shape, ladders = self._settings.now, known.shape, known.ladders
        model, where = known.served.model, known.served.model.placement
        ledger, home = self._evictor.ledger, known.entry.home
        keys = program_keys(shape, ladders, where)
        others = None if where.here or self._others is None else self._others.programs(shape, where)
        device = DeviceAccess(
            where, self._metrics, self._guards, keys, lambda: ledger.used(home) - ledger.budget(home), others
        )
        policy = EvictionPolicy(
            kv_budget(settings, where),
            idle_kv_budget(settings, where, known.entry.weights),
            parks_surplus=where.platform != "cpu" or settings.host_kv_bytes is not None,
            scope_share=settings.scope_share,
            max_snapshots=settings.max_snapshots,
        )
        shared = DeviceShare(self._evictor, self._models, known)
        held = KvHoldings(shape, library, device, ladders, self._metrics)
        kv_store = KvStore(held, policy, shared, known.host_store, self._disk_store(known, held))
        media = None
        if model.encoders is not None and shape.architecture.encoders:
            ladder, dtype = media_ladder(shape, ladders), shape.recipe.dtype
            media = MediaEncoding(
                model.encoders, dtype, ladder, device, library, self._metrics, shared, self._background
            )
        adapters, layers = None, shape.architecture.adapted_layers
        if layers is not None and where.one_device:
            adapters = AdapterSlots(layers, device, library, shared, shared.told_of_adapters)
        drafter = None if model.drafter is None or shape.drafter is None else model.drafter.params
        return Runner(
            model.params,
            shape,
            ladders,
            device,
            kv_store,
            self._metrics,
            drafts=known.drafts.on,
            media=media,
            drafter=drafter,
            adapters=adapters,
        )

    def _disk_store(self, known: KnownModel, held: KvHoldings) -> DiskStore | None:
        """A model's conversations on the disk. None: they are not kept, or nothing says which model it is."""
        known.drafts.keep_in(None)
        if self._prefixes is None or known.files is None or not known.served.model.placement.here:
            return None
        name, costs = known.served.name, (self._disk_costs, self._peer_costs)
        stored = self._stored.get(known)
        if stored is None or stored.files != known.files:
            programs = partial(family, known.shape, known.served.model.placement)
            listed = self._prefixes.of(known.files, programs)
            answers = KeptAnswers(self._prefixes, listed, name) if self._prefixes.keeps_answers else None
            stored = self._stored[known] = _Stored(known.files, listed, answers)
        known.drafts.keep_in(stored.answers)
        return DiskStore(self._prefixes, stored.prefixes, held, name, *costs, known.host_store)


def prefix_store_of(settings: Settings) -> PrefixStore | None:
    """Return where prefixes are kept on the disk. None: they are not.

    Raises:
        InputError: the key is none. InstallationError: what encrypts is missing.
    """
    key, shared, peers = settings.prefix_key_file, settings.prefix_folder, settings.prefix_peers
    if peers is not None and (key is None or settings.prefix_store is None):
        raise InputError(
            "prefix_peers: expected prefix_store too, for what this replica keeps and offers, and prefix_key_file, by "
            f"which replicas know each other; found prefix_store={settings.prefix_store!r} and "
            f"prefix_key_file={key!r}."
        )
    if settings.prefix_store is None and shared is None and key is not None:
        raise InputError(
            "prefix_key_file: expected prefix_store too, which says how many bytes may be kept, as in "
            'configure(prefix_store="32GB", prefix_key_file=...); found None.'
        )
    if shared is not None and key is None:
        raise InputError(
            "prefix_folder: expected prefix_key_file too. Others may write to a shared folder, so whatever is read "
            "there is proven with a key, the same on all machines; found None."
        )
    if settings.prefix_store is None and shared is None:
        return None
    sealing = None if key is None else Encrypted(read_key(key, "prefix_key_file"))
    reader, writer = (Background(count, name=f"gemma-jax-prefixes-{what}") for what, count in (("in", 3), ("out", 1)))
    cap = None if settings.prefix_store is None else parse_bytes("prefix_store", settings.prefix_store)
    own = prefix_folder()
    folder = PrefixFolder(own, cap) if shared is None else PrefixFolder(Path(shared).expanduser(), cap, own)
    return PrefixStore(folder, reader, writer, sealing, None if peers is None else tuple(peers))
