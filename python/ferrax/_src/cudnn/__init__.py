"""Programs of cuDNN, which ferrax does not use."""
