//! Convolutions.

use super::args::{naturals, precision};
use crate::dtypes::DTypeArg;
use crate::errors::IntoPyResult;
use crate::value::{IndexArg, PyValue, paddings};
use ferrax_ops::conv as ops;
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                    feature_group_count, batch_group_count, precision_=None, preferred_element_type=None))]
#[allow(clippy::too_many_arguments)]
fn conv_general_dilated(
    lhs: PyValue,
    rhs: PyValue,
    window_strides: &Bound<'_, PyAny>,
    padding: Vec<(IndexArg, IndexArg)>,
    lhs_dilation: &Bound<'_, PyAny>,
    rhs_dilation: &Bound<'_, PyAny>,
    dimension_numbers: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    feature_group_count: usize,
    batch_group_count: usize,
    precision_: Option<&Bound<'_, PyAny>>,
    preferred_element_type: Option<DTypeArg>,
) -> PyResult<PyValue> {
    let (lhs_spec, rhs_spec, out_spec) = dimension_numbers;
    let params = ops::ConvParams {
        window_strides: naturals(window_strides, "conv_general_dilated window_strides")?,
        padding: paddings(&padding).collect(),
        lhs_dilation: naturals(lhs_dilation, "conv_general_dilated lhs_dilation")?,
        rhs_dilation: naturals(rhs_dilation, "conv_general_dilated rhs_dilation")?,
        dimension_numbers: ops::ConvSpecs {
            lhs: naturals(&lhs_spec, "conv_general_dilated lhs_spec")?,
            rhs: naturals(&rhs_spec, "conv_general_dilated rhs_spec")?,
            out: naturals(&out_spec, "conv_general_dilated out_spec")?,
        },
        feature_group_count,
        batch_group_count,
        precision: precision(precision_)?,
        preferred_element_type: preferred_element_type.map(|d| d.0),
    };
    ops::conv(params, &lhs.0, &rhs.0).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(conv_general_dilated, m)?)
}
