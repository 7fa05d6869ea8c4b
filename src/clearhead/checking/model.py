"""The checks that a loaded model gets, by its kind."""

from __future__ import annotations

from clearhead.checking.decoder import check_decoder
from clearhead.checking.encoder_decoder import check_encoder_decoder
from clearhead.checking.families.library import of_model
from clearhead.checking.finding import Finding
from clearhead.checking.report import Check, Fault, Report
from clearhead.checking.settings import Settings
from clearhead.formats.load import Loaded, writer_of
from clearhead.messages import say
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder


def check_model(loaded: Loaded, *, seed: int = 0) -> list[Finding]:
    """Every check of a model of this kind, on a copy in float64.

    Args:
        loaded: what `load` gave.
        seed: of the ids that the model reads.

    Raises:
        UserError: if it is an encoder, of which there are no checks.
    """
    match writer_of(loaded), loaded.config:
        case Decoder() as model, DecoderConfig() as config:
            return check_decoder(model, config, seed=seed)
        case EncoderDecoder() as model, EncoderDecoderConfig() as config:
            return check_encoder_decoder(model, config, seed=seed)
    raise TypeError(f"there are no checks of a {type(loaded.model).__name__}")


def model_report(name: str, loaded: Loaded, settings: Settings) -> Report:
    """The checks of a model as a report.

    Args:
        name: what the user called it.
        loaded: what `load` gave.
        settings: the seed, and which checks are wanted.

    Raises:
        UserError: as `check_model`, or if the original that its weights are held against cannot be opened.
    """
    family = of_model(loaded, settings)
    encoder = isinstance(loaded.model, Encoder)
    # Of an encoder there is nothing to be asked but what its family has.
    alone = encoder and any(each.verdict != "skipped" for each in family.checks)
    found = [] if alone else check_model(loaded, seed=settings.seed)
    checks = tuple(Check(each.id, "pass" if each.passed else "fail", each.evidence, each.largest) for each in found)
    faults = tuple(
        Fault(each.id, "consistent", each.evidence, str(loaded.source), say("checking.mend_model"))
        for each in found
        if not each.passed
    )
    kind = "seq2seq" if isinstance(loaded.model, EncoderDecoder) else "encoder" if encoder else "lm"
    return Report(
        name,
        kind,
        False,
        tuple(each for each in (*family.checks, *checks) if wanted(each.id, settings.only)),
        tuple(each for each in (*family.faults, *faults) if wanted(each.id, settings.only)),
        family.notes,
    )


def wanted(id: str, only: frozenset[str]) -> bool:
    """Whether a check is asked for, by its name or by the first word of it."""
    return not only or id in only or id.partition(".")[0] in only
