"""What the word MODEL of a command means: a run, a folder or file of somebody else's, or the name of an installed package."""

from __future__ import annotations

from pathlib import Path

from clearhead.formats.opened import Config, Opened
from clearhead.formats.run import Run, find_run, read_json
from clearhead.messages import UserError, say
from clearhead.text.lines import shown

PICKLES = (".pt", ".pth", ".bin", ".ckpt")
"""Endings of PyTorch's own files."""


def config_of(model: str | Path) -> Config:
    """What a model is, its weights unread.

    Raises:
        UserError: as `open_model`.
    """
    found = find_model(model)
    if isinstance(found, Opened):
        return found.config
    config = found[0].model
    assert isinstance(config, Config)  # as every kind of model is
    return config


def lasting_name(model: str) -> str:
    """What a model can be found by later, from any folder: where it lies, or the name of its package."""
    return str(Path(model).resolve()) if _exists(model) else model


def is_there(model: str) -> bool:
    """Whether the name still leads somewhere."""
    from clearhead.formats.packages import BUILT_IN, PACKAGES, package_path  # noqa: PLC0415

    return _exists(model) or model == BUILT_IN or (model in PACKAGES and package_path(model) is not None)


def find_model(model: str | Path) -> Opened | tuple[Run, Path | None]:
    """What `model` names: a run, with the checkpoint if it names one of those, or the opened model of somebody else.

    Args:
        model: a path, or the name of a model that an installed package carries.

    Raises:
        UserError: if there is no such model, or its description is damaged or not understood.
    """
    path = _path(model)
    # Of "" Path makes the folder where one stands.
    if not str(model) or not _exists(path):
        raise UserError(say("formats.no_model", path=shown(str(model))))
    if path.is_file():
        return _open_file(path)
    if _is_foreign(path):
        from clearhead.formats.hugging_face.folder import open_folder  # noqa: PLC0415 - readers come as they are needed

        return open_folder(path)
    if path.is_dir() and not (path / "config.json").exists() and not _is_checkpoint(path):
        return _open_file(_only_file(path))
    return find_run(path)


def _exists(path: str | Path) -> bool:
    """Whether something is there; nothing is by a name that no system allows."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _path(model: str | Path) -> Path:
    """Where the model lies.

    Raises:
        UserError: if it is the name of a package that is not installed.
    """
    from clearhead.formats.packages import BUILT_IN, PACKAGES, built_in, package_path  # noqa: PLC0415

    if str(model) == BUILT_IN and not _exists(model):
        return built_in()
    if _exists(model) or str(model) not in PACKAGES:
        return Path(model)
    found = package_path(str(model))
    if found is None:
        raise UserError(say("exchange.not_installed", name=model))
    return found


def _open_file(path: Path) -> Opened:
    match path.suffix.lower():
        case ".gguf":
            from clearhead.formats.gguf.file import open_gguf  # noqa: PLC0415

            return open_gguf(path)
        case ending if ending in PICKLES:
            from clearhead.formats.pickles.checkpoint import open_pickle  # noqa: PLC0415

            return open_pickle(path)
        case ".safetensors":
            raise UserError(say("exchange.folder_wanted", path=path, folder=path.parent))
    raise UserError(say("exchange.unknown_file", path=path))


def _is_foreign(folder: Path) -> bool:
    """Whether a folder is one of Hugging Face's: its config.json, or peft's adapters, which are refused by name."""
    if not (folder / "config.json").is_file():
        return (folder / "adapter_config.json").is_file()
    fields = read_json(folder / "config.json")
    return "format_version" not in fields and not fields.keys().isdisjoint(("model_type", "architectures"))


def _is_checkpoint(path: Path) -> bool:
    return path.resolve().parent.name == "checkpoints"


def _only_file(folder: Path) -> Path:
    """The one model file of a folder without a description.

    Raises:
        UserError: if there is none, or more than one.
    """
    found = sorted(each for each in folder.iterdir() if each.suffix.lower() in (".gguf", *PICKLES))
    if not found:
        raise UserError(say("formats.not_a_run", path=folder))
    if len(found) > 1:
        raise UserError(say("exchange.several_files", path=folder, first=found[0].name, second=found[1].name))
    return found[0]
