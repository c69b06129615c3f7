//! Functions of one number at a time, written so that loops over them vectorize where it pays.
//!
//! `single` and `double` hold the real functions of f32 and f64 under the same names, `complex` the complex
//! ones with their branch cuts, `integer` division, `special` the gamma, zeta and Bessel families (in double precision).
//! Sources: Cephes for the polynomials, Kahan ("Much ado about nothing's sign bit") for the complex inverses,
//! Giles for the inverse error function.

pub mod complex;
pub mod double;
pub mod integer;
pub mod single;
pub mod special;
