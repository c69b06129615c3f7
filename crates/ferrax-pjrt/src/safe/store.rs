//! What a client of several processes tells the others: a store of keys and values that the host brings.
//!
//! A plugin asks for it by callbacks, from any of its threads, and waits in them. Values that it is given are its own
//! until it gives them back. Read next: `client.rs`.

use crate::sys::*;
use ferrax_base::{Error, ErrorKind, Result, error};
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// Keys and values that all processes of a program see.
pub trait Store: Send + Sync {
    /// The value of a key, which is waited for.
    fn get(&self, key: &str, patience: Duration) -> Result<Vec<u8>>;

    /// The value of a key, if it is there.
    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Sets the value of a key.
    fn put(&self, key: &str, value: &[u8]) -> Result<()>;
}

/// A store as a client has it: what its callbacks are given an address of.
pub(crate) struct Keys {
    /// Before every key, so that users of a store do not meet.
    pub(crate) folder: String,
    pub(crate) store: Arc<dyn Store>,
}

impl Keys {
    /// The arguments of a client that is to call back; `self` must outlive the client.
    pub(crate) fn told(&self, args: PJRT_Client_Create_Args) -> PJRT_Client_Create_Args {
        let own: *mut c_void = std::ptr::from_ref(self).cast_mut().cast();
        PJRT_Client_Create_Args {
            kv_get_callback: Some(get),
            kv_get_user_arg: own,
            kv_put_callback: Some(put),
            kv_put_user_arg: own,
            kv_try_get_callback: Some(try_get),
            kv_try_get_user_arg: own,
            ..args
        }
    }

    fn key(&self, key: &[u8]) -> String {
        format!("{}/{}", self.folder, String::from_utf8_lossy(key))
    }
}

/// # Safety
/// `user` is what [`Keys::told`] gave, and the key's bytes are valid.
unsafe fn asked<'a>(user: *mut c_void, key: *const c_char, size: usize) -> (&'a Keys, String) {
    // SAFETY: the caller's promise.
    unsafe {
        let keys = &*user.cast::<Keys>();
        (keys, keys.key(std::slice::from_raw_parts(key.cast(), size)))
    }
}

unsafe extern "C" fn get(args: *mut PJRT_KeyValueGetCallback_Args) -> *mut PJRT_Error {
    // SAFETY: the plugin calls with arguments that are valid during the call, and with what the client was told.
    unsafe {
        let args = &mut *args;
        let (keys, key) = asked(args.user_arg, args.key, args.key_size);
        let patience = Duration::from_millis(u64::try_from(args.timeout_in_ms).unwrap_or(0));
        answered(args.callback_error, || {
            (args.value, args.value_size) = given(&keys.store.get(&key, patience)?);
            args.value_deleter_callback = Some(taken_back);
            Ok(())
        })
    }
}

unsafe extern "C" fn try_get(args: *mut PJRT_KeyValueTryGetCallback_Args) -> *mut PJRT_Error {
    // SAFETY: as in `get`.
    unsafe {
        let args = &mut *args;
        let (keys, key) = asked(args.user_arg, args.key, args.key_size);
        answered(args.callback_error, || {
            let found = keys.store.try_get(&key)?;
            let found = found.ok_or_else(|| error!(Runtime, "NOT_FOUND: there is no key {key}"))?;
            (args.value, args.value_size) = given(&found);
            args.value_deleter_callback = Some(taken_back);
            Ok(())
        })
    }
}

unsafe extern "C" fn put(args: *mut PJRT_KeyValuePutCallback_Args) -> *mut PJRT_Error {
    // SAFETY: as in `get`; the value is valid during the call.
    unsafe {
        let args = &mut *args;
        let (keys, key) = asked(args.user_arg, args.key, args.key_size);
        let none = args.value.is_null();
        let value = if none { &[] } else { std::slice::from_raw_parts(args.value.cast(), args.value_size) };
        answered(args.callback_error, || keys.store.put(&key, value))
    }
}

/// An address of a copy of bytes with their number in front, and that number.
fn given(bytes: &[u8]) -> (*mut c_char, usize) {
    let mut copy = Vec::with_capacity(bytes.len() + PREFIX);
    copy.extend_from_slice(&bytes.len().to_ne_bytes());
    copy.extend_from_slice(bytes);
    let copy: *mut [u8] = Box::into_raw(copy.into_boxed_slice());
    // SAFETY: the bytes lie behind their number.
    (unsafe { copy.cast::<u8>().add(PREFIX) }.cast(), bytes.len())
}

const PREFIX: usize = size_of::<usize>();

/// Frees what [`given`] made.
unsafe extern "C" fn taken_back(value: *mut c_char) {
    // SAFETY: the address is one that `given` made, for this one call; the number in front is that of its bytes.
    unsafe {
        let copy = value.cast::<u8>().sub(PREFIX);
        let size = copy.cast::<usize>().read_unaligned();
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(copy, size + PREFIX)));
    }
}

/// What a callback returns: nothing, or an error that the plugin makes. A panic may not pass through it.
///
/// # Safety
/// `make` is what the plugin gave to make errors with.
unsafe fn answered(make: *mut PJRT_CallbackError, run: impl FnOnce() -> Result<()>) -> *mut PJRT_Error {
    let failed = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(error)) => error,
        Err(_) => error!(Internal, "a store of keys panicked"),
    };
    // SAFETY: the caller's promise; an error without its maker cannot be told, and the plugin then finds no value.
    let Some(make) = (unsafe { make.as_ref() }).copied().flatten() else { return null_mut() };
    let text = failed.to_string();
    // SAFETY: the text outlives the call, which copies it.
    unsafe { make(code_of(&failed, &text), text.as_ptr().cast(), text.len()) }
}

/// XLA's code of an error: the one that its text begins with.
fn code_of(error: &Error, text: &str) -> c_int {
    let named = text.split_once(':').and_then(|(name, _)| crate::result::code_number(name));
    let kind = match *error.0 {
        ErrorKind::Internal(_) => "INTERNAL",
        _ => "UNKNOWN",
    };
    named.or_else(|| crate::result::code_number(kind)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Table(Mutex<HashMap<String, Vec<u8>>>);

    impl Store for Table {
        fn get(&self, key: &str, _: Duration) -> Result<Vec<u8>> {
            self.try_get(key)?.ok_or_else(|| error!(Runtime, "DEADLINE_EXCEEDED: no {key}"))
        }

        fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
            Ok(self.0.lock().unwrap().get(key).cloned())
        }

        fn put(&self, key: &str, value: &[u8]) -> Result<()> {
            assert!(!value.is_empty(), "an empty value");
            self.0.lock().unwrap().insert(key.to_owned(), value.to_owned());
            Ok(())
        }
    }

    thread_local! {
        static SAID: Mutex<Option<(c_int, String)>> = const { Mutex::new(None) };
    }

    unsafe extern "C" fn say(code: c_int, text: *const c_char, size: usize) -> *mut PJRT_Error {
        // SAFETY: the text of a call.
        let text = unsafe { std::slice::from_raw_parts(text.cast(), size) };
        SAID.with(|said| *said.lock().unwrap() = Some((code, String::from_utf8_lossy(text).into_owned())));
        std::ptr::dangling_mut()
    }

    #[test]
    fn what_is_put_comes_back_and_errors_have_their_codes() {
        let keys = Keys { folder: "here".into(), store: Arc::new(Table::default()) };
        let args = keys.told(Args::new());
        let mut make: PJRT_CallbackError = Some(say);
        let mut put = |key: &str, value: &[u8]| {
            let mut put = PJRT_KeyValuePutCallback_Args {
                key: key.as_ptr().cast(),
                key_size: key.len(),
                value: value.as_ptr().cast(),
                value_size: value.len(),
                callback_error: &raw mut make,
                user_arg: args.kv_put_user_arg,
                ..Args::new()
            };
            // SAFETY: the arguments are alive.
            unsafe { args.kv_put_callback.unwrap()(&raw mut put) }
        };
        let mut make: PJRT_CallbackError = Some(say);
        let mut get = |key: &str| {
            let mut get = PJRT_KeyValueGetCallback_Args {
                key: key.as_ptr().cast(),
                key_size: key.len(),
                callback_error: &raw mut make,
                user_arg: args.kv_get_user_arg,
                ..Args::new()
            };
            // SAFETY: the arguments are alive; the value is given back.
            unsafe {
                let failed = args.kv_get_callback.unwrap()(&raw mut get);
                if !failed.is_null() {
                    return None;
                }
                let value = std::slice::from_raw_parts(get.value.cast::<u8>(), get.value_size).to_vec();
                get.value_deleter_callback.unwrap()(get.value);
                Some(value)
            }
        };
        assert!(put("a", &[1, 0, 3]).is_null());
        assert_eq!(get("a"), Some(vec![1, 0, 3]));
        assert_eq!(keys.store.try_get("here/a").unwrap(), Some(vec![1, 0, 3]));
        assert_eq!(get("b"), None);
        let said = SAID.with(|said| said.lock().unwrap().take());
        assert_eq!(said, Some((4, "DEADLINE_EXCEEDED: no here/b".to_owned())));
        assert!(!put("a", &[]).is_null());
        assert_eq!(SAID.with(|said| said.lock().unwrap().take().map(|(code, _)| code)), Some(13));
    }
}
