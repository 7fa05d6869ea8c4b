"""The checks that a loaded model gets, by its kind."""

from __future__ import annotations

from clearhead.checking.decoder import check_decoder
from clearhead.checking.encoder_decoder import check_encoder_decoder
from clearhead.checking.finding import Finding
from clearhead.formats.load import Loaded, writer_of
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderDecoderConfig
from clearhead.models.decoder import Decoder
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
