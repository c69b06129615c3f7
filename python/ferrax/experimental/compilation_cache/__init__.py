"""Programs of plugins that outlive the process: `compilation_cache`."""
