"""Event models and their codec, for consumers of the topics.

    from schedulerlog.events import NodesJudged, Rejected, decode

    event = decode(message.value, message.headers)  # never raises

``decode`` gives the model of a record, or ``Rejected`` with the reason. ``join`` makes one summary of the parts that a
long one was divided into. ``EVENTS`` lists all models, ``TOPICS`` all topics. Fields are only ever added from 0.1.0 on.

The package ``schemas`` imports only relatively, so the wheel has it once, below ``schedulerlog.packages``, and two
programs load it by two names: the command line as ``schemas``, a consumer by this module.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or not (Path(__file__).parent / "packages").is_dir():
    from schemas.codec.chunking import join
    from schemas.codec.records import EncodedRecord, Rejected, decode, encode
    from schemas.events import *  # noqa: F403 - `__all__` of the contract is the list
    from schemas.events import __all__ as _events
    from schemas.topics import TOPICS, Topic
else:
    from schedulerlog.packages.schemas.codec.chunking import join
    from schedulerlog.packages.schemas.codec.records import EncodedRecord, Rejected, decode, encode
    from schedulerlog.packages.schemas.events import *  # noqa: F403
    from schedulerlog.packages.schemas.events import __all__ as _events
    from schedulerlog.packages.schemas.topics import TOPICS, Topic

__all__ = [*_events, "TOPICS", "EncodedRecord", "Rejected", "Topic", "decode", "encode", "join"]
