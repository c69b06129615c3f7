//! The error every crate returns: one enum, boxed, so that `Result<Value>` stays small.
//!
//! The Python binding maps [`ErrorKind`] to exception classes in one file. Context that is costly to
//! describe is kept as [`Explain`] and turned into text only in `Display`.

use crate::Source;
use std::any::Any;
use std::fmt;

/// `Result` with ferrax's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Context whose text is made when it is shown.
pub type Explain = Box<dyn fmt::Display + Send + Sync>;

/// An error of a host callback, carried through Rust untouched (a Python exception, say).
pub trait HostError: Any + Send + Sync + fmt::Display {
    /// For the host to take its own error back.
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
}

/// What went wrong; each variant is one exception class in Python.
pub enum ErrorKind {
    /// An operand of the wrong dtype, rank or kind (`TypeError`).
    Type(Explain),
    /// Dtypes that do not combine implicitly (`TypePromotionError`).
    Promotion(Explain),
    /// A value outside what the operation takes (`ValueError`).
    Value(Explain),
    /// An index out of range or of the wrong kind (`IndexError`).
    Index(Explain),
    /// A number too large for its type (`OverflowError`).
    Overflow(Explain),
    /// Something that ferrax does not have yet, by name (`NotImplementedError`).
    NotImplemented(Explain),
    /// An allocation that cannot be made (`MemoryError`).
    Memory(Explain),
    /// An attribute that is not there (`AttributeError`).
    Attribute(Explain),
    /// A mapping key that is not there (`KeyError`).
    Key(Explain),
    /// An array that was deleted or donated (`RuntimeError`).
    Deleted(Explain),
    /// Any other failure while running (`RuntimeError`).
    Runtime(Explain),
    /// NaN or infinity found in a debug mode (`FloatingPointError`).
    FloatingPoint(Explain),
    /// A traced value where a concrete one is needed (`ConcretizationTypeError`).
    Concretization(Explain),
    /// A traced value where Python needs a bool (`TracerBoolConversionError`).
    BoolConversion(Explain),
    /// A traced value where Python needs an integer (`TracerIntegerConversionError`).
    IntegerConversion(Explain),
    /// A traced value handed to NumPy (`TracerArrayConversionError`).
    ArrayConversion(Explain),
    /// A traced boolean mask used as an index (`NonConcreteBooleanIndexError`).
    BooleanIndex(Explain),
    /// A name of a mapped axis that no `vmap` binds (`NameError`).
    UnboundAxis(Explain),
    /// A tracer used after its transformation ended (`UnexpectedTracerError`).
    UnexpectedTracer(Explain),
    /// A tracer that outlived its trace, found by the leak checker (`Exception`).
    Leak(Explain),
    /// The host's own error.
    Host(Box<dyn HostError>),
    /// A bug in ferrax (`InternalError`): a caught panic or a broken invariant.
    Internal(Explain),
}

/// A boxed [`ErrorKind`].
pub struct Error(pub Box<ErrorKind>);

macro_rules! kind_of {
    ($error:expr; $($kind:ident)*) => {
        match &*$error.0 {
            $(ErrorKind::$kind(_) => ErrorKind::$kind,)*
            ErrorKind::Host(_) => ErrorKind::Runtime,
        }
    };
}

impl Error {
    /// The same error once more: of its kind, with its text; an error of the host becomes one of running.
    #[cold]
    pub fn again(&self) -> Error {
        (self.kind())(Box::new(self.to_string())).into()
    }

    /// The same error with the place of the call that started what failed: for errors that surface at a later line.
    #[cold]
    pub fn started_at(self, call: Source) -> Error {
        (self.kind())(Box::new(Started { error: self, call })).into()
    }

    /// What makes an error of the same kind; an error of the host becomes one of running.
    fn kind(&self) -> fn(Explain) -> ErrorKind {
        kind_of!(self; Type Promotion Value Index Overflow NotImplemented Memory Attribute Key Deleted Runtime
            FloatingPoint Concretization BoolConversion IntegerConversion ArrayConversion BooleanIndex UnboundAxis
            UnexpectedTracer Leak Internal)
    }
}

/// An error with the call that started what failed.
struct Started {
    error: Error,
    call: Source,
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        match self.call.location() {
            Some(at) => write!(f, "\nThe computation that failed was started at {at}."),
            None => Ok(()),
        }
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ErrorKind::*;
        match &*self.0 {
            Type(m) | Promotion(m) | Value(m) | Index(m) | Overflow(m) | NotImplemented(m) | Memory(m)
            | Attribute(m) | Key(m) | Deleted(m) | Runtime(m) | FloatingPoint(m) | Concretization(m)
            | BoolConversion(m) | IntegerConversion(m) | ArrayConversion(m) | BooleanIndex(m) | UnboundAxis(m)
            | UnexpectedTracer(m) | Leak(m) | Internal(m) => m.fmt(f),
            Host(e) => e.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Builds an [`Error`]: `error!(Type, "add got {} and {}", a, b)`.
#[macro_export]
macro_rules! error {
    ($kind:ident, $text:literal) => {
        $crate::Error::from($crate::ErrorKind::$kind(Box::new(format!($text))))
    };
    ($kind:ident, $($arg:tt)*) => {
        $crate::Error::from($crate::ErrorKind::$kind(Box::new(format!($($arg)*))))
    };
}

/// Returns early with an [`Error`]: `bail!(Value, "axis {axis} is out of range")`.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($arg:tt)*) => {
        return Err($crate::error!($kind, $($arg)*))
    };
}
