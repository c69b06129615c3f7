"""Where equations come from."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "JaxStackTraceBeforeTransformation has_user_context is_user_filename raw_frame_to_frame register_inclusion",
    "the source_info of an equation has its scopes and the innermost frame",
    names_of(__name__, "ferrax.extend.source_info_util", "ferrax._scopes"),
)
