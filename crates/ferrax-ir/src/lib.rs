//! Values, traces, primitives and the Jaxpr.
