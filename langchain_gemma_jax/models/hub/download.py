"""Download of a model's files by its id, from the Hugging Face Hub or a mirror of it.

``huggingface_hub`` transfers, resumes and caches. This module selects the files, refuses pickles, and
detects a full disk and incomplete files.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    HubError,
    OfflineError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.folder import ADAPTER, ADAPTER_WEIGHTS, BESIDE_A_MODEL, CONFIG, PICKLES
from langchain_gemma_jax.models.checkpoint.gguf_file_names import choose, projectors, text_models
from langchain_gemma_jax.models.checkpoint.safetensors import INDEX, SINGLE, open_safetensors
from langchain_gemma_jax.models.checkpoint.sentence_transformers import LENGTH, MODULES, OF_MODULES, PROMPTS
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.hub.hub_errors import MAY_PASS, UnreachableError, explained
from langchain_gemma_jax.models.hub.hub_request import HubRequest, check_token, is_commit, make_request
from langchain_gemma_jax.models.hub.hub_stop import stoppable
from langchain_gemma_jax.models.hub.progress import Transfer, is_wanted
from langchain_gemma_jax.stopping import Stop

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import tqdm

Files: TypeAlias = dict[str, int | None]
"""File names and their sizes in bytes; None: the Hub did not say."""

_TOKENIZERS = ("tokenizer.json", "tokenizer.model")
_BESIDE_WEIGHTS = frozenset(
    {CONFIG, "generation_config.json", INDEX, *_TOKENIZERS, "tokenizer_config.json", "special_tokens_map.json"}
    | {MODULES, PROMPTS, LENGTH, "chat_template.jinja", "preprocessor_config.json", "processor_config.json"}
)

_MOST_BYTES = 1 << 63  # more than any file has
_PAUSES = (1.0, 3.0)  # seconds before each retry, after the Hub answered that it is busy or broken
_ROUNDS = 3  # downloads of a branch that moves during the transfer


def download(
    model_id: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    progress: bool | None = None,
    stop: Stop | None = None,
    file: str | None = None,
    is_adapter: bool = False,
    transfer: Transfer | None = None,
) -> Path:
    """Download a model's files unless they are in the local cache, and return their folder, or a GGUF file in it.

    The folder is the snapshot of one commit and holds the files that ``load`` reads: configuration, tokenizer and
    the safetensors at the top of the repository, and the inner folders of an embedding model. Nothing else is
    downloaded, and never a pickle. Files that are in the cache are not transferred again.

    Args:
        model_id: ``"organization/name"``, as in ``"google/gemma-3-1b-it"``.
        revision: a branch, a tag or a commit; the branch ``main`` when None. A commit that is complete in
            the cache needs no network at all.
        token: for gated and private models. When None, huggingface_hub looks for one: in ``HF_TOKEN``,
            then where ``hf auth login`` left it.
        progress: True to draw progress bars. When None, only if standard error is a terminal.
        stop: lets another thread end the download, also while the Hub sends nothing.
        file: the name of a GGUF file, or its quantization, as in ``"Q8_0"``.
        is_adapter: True for an adapter: PEFT's two files, or a GGUF file.
        transfer: counts the bytes, for another thread that looks.

    Raises:
        InputError: the id, the revision or the token is malformed. No request was sent.
        ModelNotOnHubError: there is no such id, or no such revision.
        GatedModelError: the license has to be accepted first, or the token is missing or wrong.
        OfflineError: the Hub cannot be reached, and the cache holds no complete copy. If it does, that copy
            is returned, with a warning.
        CheckpointNotFoundError: the repository holds no Gemma, or no adapter, in a format that can be read.
        UnsafeCheckpointError: it holds the weights only as pickles.
        UnsupportedModelError: it holds only an adapter.
        CorruptCheckpointError: a file has another size than the Hub announced.
        HubError: there is not enough disk space, or the cache cannot be written.
    """
    request = make_request(model_id, revision, token, file, is_adapter=is_adapter)
    with explained(request):
        if request.is_pinned and (folder := _cached(request, proven=True)):
            return folder
    try:
        with explained(request):
            return _fetch(request, progress=progress, stop=stop, transfer=transfer or Transfer())
    except UnreachableError as error:
        if stop is not None:
            stop.check()
        with explained(request):
            copy = _cached(request, proven=False)
        if copy is None:
            raise OfflineError(
                f"{model_id} cannot be fetched: {error}; and the local cache, {request.cache}, has no complete copy "
                f"of its revision {request.revision!r}. If you have the model's files, pass their folder in place of "
                "the id."
            ) from error.__cause__
        if not request.offline:
            warnings.warn(f"{error}. Using the copy of {model_id} in the local cache, {copy}.", stacklevel=2)
        return copy


def cached_copy(model_id: str, file: str | None = None) -> Path | None:
    """Return the path to load of a model that is whole in the local cache; None if it is not. No request is sent.

    Raises:
        InputError: the id or the file's name is malformed.
    """
    request = make_request(model_id, None, None, file)
    with explained(request):
        return _cached(request, proven=False)


# The transfer.


def _fetch(request: HubRequest, *, progress: bool | None, stop: Stop | None, transfer: Transfer) -> Path:
    from huggingface_hub import get_token

    if request.offline:
        raise UnreachableError("HF_HUB_OFFLINE is set")
    if implicit := request.token or get_token():
        check_token(implicit)
    with stoppable(stop, request.timeout) as headers:
        return _fetch_with(headers, request, progress=progress, stop=stop, transfer=transfer)


def _fetch_with(
    headers: dict[str, str] | None,
    request: HubRequest,
    *,
    progress: bool | None,
    stop: Stop | None,
    transfer: Transfer,
) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    api = HfApi(endpoint=request.endpoint, token=request.token, library_name="langchain-gemma-jax", headers=headers)
    for _ in range(_ROUNDS):
        commit, listed = _list(api, request, stop)
        files = _select(listed, request)
        here = _forget_damaged(request, commit, files)
        names, total = [glob.escape(name) for name in files], sum(size or 0 for size in files.values())
        _check_space(request, names, total)
        transfer.begin(commit, total, here)
        folder = Path(
            snapshot_download(
                request.model_id,
                revision=request.revision,
                allow_patterns=names,
                cache_dir=request.cache,
                endpoint=request.endpoint,
                token=request.token,
                headers=headers,
                tqdm_class=_bars(progress=progress, transfer=transfer),
            )
        )
        if folder.name == commit:
            _check_arrived(folder, files)
            transfer.end()
            return _path_to_load(folder, files)
    raise HubError(
        f"{request.model_id}: revision {request.revision!r} moved {_ROUNDS} times while it was downloaded. "
        "Pin a commit: revision='<40 hexadecimal digits>'."
    )


def _list(api: HfApi, request: HubRequest, stop: Stop | None) -> tuple[str, Files]:
    """Return the commit of the revision now, and every file in it."""
    from huggingface_hub.errors import HfHubHTTPError

    for pause in (*_PAUSES, None):
        try:
            info = api.model_info(
                request.model_id, revision=request.revision, files_metadata=True, timeout=request.timeout
            )
            break
        except HfHubHTTPError as error:
            if pause is None or error.response.status_code not in MAY_PASS:
                raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # a page of a login portal, for one
            raise UnreachableError(f"{request.site} does not answer as a Hub does") from error
        time.sleep(pause) if stop is None else stop.sleep(pause)
    listing = info.siblings or ()
    if not isinstance(info.sha, str) or not is_commit(info.sha):
        raise UnreachableError(f"{request.site} does not answer as a Hub does: it names no commit")
    if not all(_is_listed(file.rfilename, file.size) for file in listing):
        raise UnreachableError(f"{request.site} does not answer as a Hub does: its list of files is malformed")
    return info.sha, {file.rfilename: file.size for file in listing}


def _is_listed(name: object, size: object) -> bool:
    """Return True if a listed name and size are valid: huggingface_hub does not check the server's answer."""
    is_size = size is None or (type(size) is int and 0 <= size < _MOST_BYTES)  # `true` is an int to Python
    return is_size and isinstance(name, str) and bool(name) and name.isprintable() and "\\" not in name


def _path_to_load(folder: Path, files: Files) -> Path:
    """Return the path to load for these files of a folder: the folder, or the first of its GGUF files."""
    models = text_models(files)
    return folder / models[0] if models else folder


def _select(listed: Mapping[str, int | None], request: HubRequest) -> Files:
    """Return the files to download from a repository: those at its top, one copy of the weights, no pickles."""
    if request.is_adapter:
        return _select_adapter(listed, request)
    model_id = request.model_id
    top = sorted(name for name in listed if "/" not in name)
    tensors = [name for name in top if name.endswith(".safetensors") and not name.startswith("adapter_model")]
    if INDEX in top:  # shards; some repositories also keep a second copy, in one file or in other shards
        weights = [name for name in tensors if re.fullmatch(r"model-\d+-of-\d+\.safetensors", name)] or tensors
    else:
        weights = [SINGLE] if SINGLE in tensors else tensors
    if request.file is not None or (not weights and text_models(listed)):
        chosen = choose(listed, request.file, model_id)
        return {name: listed.get(name) for name in (*chosen, *projectors(listed, chosen[0])[:1])}
    if CONFIG in top and weights:
        of_modules = [name for name in sorted(listed) if MODULES in top and OF_MODULES.fullmatch(name)]
        named = [name for name in top if name in _BESIDE_WEIGHTS or name in weights]
        return {name: listed[name] for name in (*named, *of_modules)}
    if ADAPTER in top:
        raise UnsupportedModelError(f"{model_id}: expected a model, found an adapter (LoRA). {BESIDE_A_MODEL}")
    pickles = [name for name in listed if name.lower().endswith(PICKLES)]
    if pickles and not weights:
        raise _only_pickles(model_id, "weights as .safetensors at the top of the repository", pickles, "model")
    raise CheckpointNotFoundError(
        model_id, f"{CONFIG} and *.safetensors at the top of the repository", _shown(listed), "Is this a Gemma model?"
    )


def _select_adapter(listed: Mapping[str, int | None], request: HubRequest) -> Files:
    """Return the files to download of an adapter: PEFT's two files at the top of the repository, or a GGUF file."""
    adapter_id, named = request.model_id, (ADAPTER, ADAPTER_WEIGHTS)
    if request.file is None and all(name in listed for name in named):
        return {name: listed[name] for name in named}
    if request.file is not None or text_models(listed):
        return {name: listed[name] for name in choose(listed, request.file, adapter_id)}
    if pickles := [name for name in listed if name.startswith("adapter_model") and name.endswith(PICKLES)]:
        raise _only_pickles(adapter_id, ADAPTER_WEIGHTS, pickles, "adapter")
    advice = "Is this an adapter (LoRA)? A whole model is given as model=...."
    expected = f"{ADAPTER} and {ADAPTER_WEIGHTS} at the top of the repository, or a GGUF file"
    raise CheckpointNotFoundError(adapter_id, expected, _shown(listed), advice)


def _only_pickles(model_id: str, expected: str, pickles: Sequence[str], kind: str) -> UnsafeCheckpointError:
    return UnsafeCheckpointError(
        model_id,
        expected,
        f"pickles: {', '.join(sorted(pickles)[:4])}",
        "A pickle can run any code when it is opened, so it was not even downloaded. Look for a conversion of "
        f"the {kind}, or for a revision that has safetensors.",
    )


def _shown(listed: Mapping[str, int | None]) -> str:
    return short(", ".join(sorted(listed)[:8])) if listed else "nothing"


def _check_space(request: HubRequest, names: list[str], total: int) -> None:
    """Refuse a download that does not fit on the cache's disk, before it begins."""
    from huggingface_hub import snapshot_download

    disk = next(folder for folder in (request.cache, *request.cache.parents) if folder.is_dir())
    free = shutil.disk_usage(disk).free
    if total <= free:
        return
    plan = snapshot_download(  # one request per file, which tells if it is in the cache already
        request.model_id,
        revision=request.revision,
        allow_patterns=names,
        cache_dir=request.cache,
        endpoint=request.endpoint,
        token=request.token,
        tqdm_class=_bars(progress=False, transfer=Transfer()),
        dry_run=True,
    )
    needed = sum(file.file_size or 0 for file in plan if file.will_download)
    if needed > free:
        raise HubError(
            f"{request.model_id} needs {_size(needed)} more in the cache, {request.cache}, and its disk has "
            f"{_size(free)} free. Make room there, or name a folder on a larger disk in HF_HUB_CACHE."
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count:,} bytes"


def _check_arrived(folder: Path, files: Files) -> None:
    for name, size in files.items():
        path = folder / name
        if not path.is_file():  # huggingface_hub returns an incomplete folder if the Hub stops answering
            raise UnreachableError(f"The Hub stopped answering before {name} was there")
        if size is not None and (found := path.stat().st_size) != size:
            _forget(path)
            raise CorruptCheckpointError(
                path,
                f"{size:,} bytes, as the Hub announced",
                f"{found:,} bytes",
                "The file was deleted. Download it again; if that does not help, ask the operator of the endpoint.",
            )


_BYTES = "huggingface_hub.snapshot_download"  # the name of the bar that counts the bytes of all files


def _bars(*, progress: bool | None, transfer: Transfer) -> type[tqdm]:
    """Return huggingface_hub's progress bar, shown or not. HF_HUB_DISABLE_PROGRESS_BARS=1 overrides any argument."""
    from huggingface_hub.utils.tqdm import tqdm

    shown = is_wanted(progress=progress)

    class Bar(tqdm):
        def __init__(self, *args: object, **options: object) -> None:
            self._of_bytes = options.get("name") == _BYTES and options.get("unit") == "B"
            super().__init__(*args, **options | {"disable": not shown})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            if self._of_bytes:
                transfer.count(int(n or 0))
            drawn: bool | None = super().update(n)
            return drawn

    return Bar


# The cache.


def _cached(request: HubRequest, *, proven: bool) -> Path | None:
    """Return the folder of a complete copy in the cache, or None. No request is sent.

    huggingface_hub keeps the list of a commit's files when it downloaded the whole snapshot. Without that list
    (another program downloaded single files) a copy that looks complete is accepted, unless ``proven``.
    """
    from huggingface_hub import get_cached_repo_tree, snapshot_download
    from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

    try:
        folder = Path(
            snapshot_download(
                request.model_id,
                revision=request.revision,
                cache_dir=request.cache,
                local_files_only=True,
                allow_patterns=[],  # to get only the path
            )
        )
        tree = get_cached_repo_tree(request.model_id, revision=folder.name, cache_dir=request.cache)
    except LocalEntryNotFoundError:
        return None
    except CachedRepoTreeNotFoundError:
        return _whole_copy(folder, request) if not proven else None
    files = _select({file.path: file.size for file in tree}, request)
    if not proven and (models := text_models(files)):  # encoders are optional: other programs do not download them
        files = {name: size for name, size in files.items() if name not in projectors(files, models[0])}
    whole = all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in files.items())
    return _path_to_load(folder, files) if whole else None


def _whole_copy(folder: Path, request: HubRequest) -> Path | None:
    """Return the path to load in a folder that looks complete; else None."""
    listed: Files = {path.relative_to(folder).as_posix(): None for path in folder.rglob("*") if path.is_file()}
    try:
        files = _select(listed, request)
    except (CheckpointError, UnsupportedModelError):
        return None
    to_load = _path_to_load(folder, files)
    if to_load != folder:
        return to_load if all((folder / name).is_file() for name in files) else None
    return folder if request.is_adapter or _looks_whole(folder) else None


def _looks_whole(folder: Path) -> bool:
    if not (folder / CONFIG).is_file() or not any((folder / name).is_file() for name in _TOKENIZERS):
        return False
    try:
        with open_safetensors(folder):  # checks every header against its file's length, and reads no tensor
            return True
    except CheckpointError:
        return False


def _forget_damaged(request: HubRequest, commit: str, files: Files) -> int:
    """Delete cached files of a wrong size, so that they are downloaded again. Return the bytes of the others."""
    from huggingface_hub import try_to_load_from_cache

    here = 0
    for name, size in files.items():
        path = try_to_load_from_cache(request.model_id, name, request.cache, revision=commit)
        if not isinstance(path, str):
            continue
        if size in (None, found := Path(path).stat().st_size):
            here += found
        else:
            _forget(Path(path))
    return here


def _forget(path: Path) -> None:
    """Delete a file of a snapshot; if it is a link to content in the same model's cache, the content too."""
    if path.is_symlink():
        content = Path(os.path.normpath(path.parent / path.readlink()))
        if content.is_relative_to(path.parents[2]):  # models--org--name/snapshots/<commit>/file
            content.unlink(missing_ok=True)
    path.unlink(missing_ok=True)
