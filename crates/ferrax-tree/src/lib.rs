//! Pytrees: flatten, unflatten, treedefs and key paths, generic over the host's node types.
