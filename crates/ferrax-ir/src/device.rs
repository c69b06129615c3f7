//! Where arrays live: a device, or several of them with a sharding, in one word.
//!
//! Shardings are interned: what an array has is a number, so that the question whether an array is on one CPU device,
//! which every operation asks, is one comparison. What a sharding means is the host's business (a mesh and a spec, in
//! Python); here it is its devices, its replicated form, and a token of the host's.
//!
//! Read next: `array.rs`, whose arrays have one.

use crate::tiles::Tiles;
use ferrax_base::fork::Lock;
use ferrax_base::{Result, error};
use std::sync::Arc;

/// A device of this process, or several with a sharding.
///
/// The low half is a device: the number of its platform's engine, and its number on that platform. The embedded CPU is
/// platform 0, so that one comparison tells its devices, and `DeviceId(0)` is the first of them. The high half is the
/// number of a sharding, whose first device stands in the low half; zero for the device alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

impl DeviceId {
    /// Devices that a platform can have, and platforms of a process.
    pub const MOST: usize = 1 << 13;
    /// Platforms that a process can have.
    pub const PLATFORMS: usize = 1 << 3;
    const SINGLE: u32 = 0xffff;

    /// A device by its platform's number and its own; both must be below their bounds.
    pub fn new(platform: usize, index: usize) -> DeviceId {
        debug_assert!(platform < Self::PLATFORMS && index < Self::MOST);
        DeviceId((platform * Self::MOST + index) as u32)
    }

    /// Whether it is one device of the embedded CPU: its memory is the host's, and operations go straight to kernels.
    #[inline]
    pub fn is_cpu(self) -> bool {
        self.0 < Self::MOST as u32
    }

    /// Whether it is devices of the embedded CPU, one or several: they share the host's memory.
    #[inline]
    pub fn on_cpu(self) -> bool {
        self.single().is_cpu()
    }

    /// Whether it is several devices with a sharding (or one, with a mesh).
    #[inline]
    pub fn is_sharded(self) -> bool {
        self.0 > Self::SINGLE
    }

    /// The device, the first one of several.
    #[inline]
    pub fn single(self) -> DeviceId {
        DeviceId(self.0 & Self::SINGLE)
    }

    /// The number of its platform.
    #[inline]
    pub fn platform(self) -> usize {
        self.single().0 as usize / Self::MOST
    }

    /// Its number on its platform, which users see.
    #[inline]
    pub fn index(self) -> usize {
        self.single().0 as usize % Self::MOST
    }

    /// What is known of the sharding, if it is one.
    pub fn sharding(self) -> Option<&'static Sharding> {
        if self.is_sharded() { TABLE.lock().get((self.0 >> 16) as usize - 1).copied() } else { None }
    }

    /// The sharding, if it is over several devices whose memories are their own: a buffer of an array there is one a device.
    pub fn cut(self) -> Option<(&'static Sharding, &'static Tiles)> {
        if self.on_cpu() {
            return None;
        }
        let sharding = self.sharding()?;
        Some((sharding, sharding.tiles.as_ref()?))
    }

    /// The devices, in the sharding's order.
    pub fn devices(self) -> Arc<[DeviceId]> {
        self.sharding().map_or_else(|| Arc::new([self.single()]) as Arc<[DeviceId]>, |s| s.devices.clone())
    }

    /// The sharding over the same devices by which each holds everything; the device itself when it is one.
    pub fn replicated(self) -> DeviceId {
        self.sharding().map_or(self, |s| s.replicated.unwrap_or(self))
    }
}

/// An interned sharding.
#[derive(Debug)]
pub struct Sharding {
    /// The devices, in its order; the first stands in the [`DeviceId`].
    pub devices: Arc<[DeviceId]>,
    /// The sharding over the same devices by which each holds everything; `None` when it is that.
    pub replicated: Option<DeviceId>,
    /// How it prints.
    pub text: Arc<str>,
    /// What the host knows it by.
    pub token: usize,
    /// Which part of an array each device has in its own memory; `None` where all devices see the whole.
    pub tiles: Option<Tiles>,
    /// Axes of arrays along which programs that say it may divide further; `None` for all of them.
    pub open: Option<Vec<usize>>,
}

/// Shardings by number, from 1 on. They stay for the process: there are as many as programs have layouts.
static TABLE: Lock<Vec<&'static Sharding>> = Lock::new(Vec::new());

/// A new sharding; the caller keeps equal ones apart. Errors when it has no devices, and when numbers are used up.
pub fn intern(sharding: Sharding) -> Result<DeviceId> {
    let Some(&first) = sharding.devices.first() else {
        return Err(error!(Value, "a sharding needs at least one device"));
    };
    let mut table = TABLE.lock();
    let number = table.len() as u32 + 1;
    if number > DeviceId::SINGLE {
        return Err(error!(Runtime, "more than {} different shardings of arrays in one process", DeviceId::SINGLE));
    }
    table.push(Box::leak(Box::new(sharding)));
    Ok(DeviceId(number << 16 | first.single().0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharding_is_its_first_device_with_a_number() {
        let devices: Arc<[DeviceId]> = Arc::new([DeviceId(2), DeviceId(3)]);
        let whole = Sharding {
            devices: devices.clone(),
            replicated: None,
            text: "P()".into(),
            token: 1,
            tiles: None,
            open: Some(Vec::new()),
        };
        let whole = intern(whole).unwrap();
        let parts =
            Sharding { devices, replicated: Some(whole), text: "P('x')".into(), token: 2, tiles: None, open: None };
        let parts = intern(parts).unwrap();
        assert!(parts.is_sharded() && parts.on_cpu() && !parts.is_cpu() && parts != whole);
        assert_eq!((parts.single(), parts.index(), parts.platform()), (DeviceId(2), 2, 0));
        assert_eq!((parts.replicated(), whole.replicated()), (whole, whole));
        assert_eq!(&*parts.devices(), [DeviceId(2), DeviceId(3)]);
        assert_eq!(parts.sharding().map(|s| s.token), Some(2));
        assert!(!DeviceId(2).is_sharded() && DeviceId(2).sharding().is_none());
    }
}
