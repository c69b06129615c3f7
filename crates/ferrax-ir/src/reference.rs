//! Tensors of exact scalars: what the reference rules compute with. Slow and obviously right.

use ferrax_base::{Aval, Buffer, Result, Scalar, shape};

/// An array as a list of scalars in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefTensor {
    /// Shape and dtype.
    pub aval: Aval,
    /// Elements.
    pub data: Vec<Scalar>,
}

impl RefTensor {
    /// Elements computed from their multi-index.
    pub fn build(aval: &Aval, mut f: impl FnMut(&[usize]) -> Scalar) -> RefTensor {
        let mut index = vec![0; aval.rank()];
        let data = (0..aval.size())
            .map(|_| {
                let v = f(&index);
                advance(&mut index, &aval.shape);
                v
            })
            .collect();
        RefTensor { aval: aval.clone(), data }
    }

    /// The element at a multi-index; rank-0 tensors stand for every index.
    pub fn at(&self, index: &[usize]) -> Scalar {
        if self.aval.rank() == 0 {
            return self.data[0];
        }
        let strides = shape::strides(&self.aval.shape);
        self.data[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()]
    }

    /// Elementwise function of operands of one shape (or rank 0).
    pub fn map(aval: &Aval, args: &[RefTensor], mut f: impl FnMut(&[Scalar]) -> Scalar) -> RefTensor {
        let mut row = Vec::with_capacity(args.len());
        RefTensor::build(aval, |i| {
            row.clear();
            row.extend(args.iter().map(|a| a.at(i)));
            f(&row)
        })
    }

    /// From a buffer.
    pub fn from_buffer(aval: &Aval, buffer: &Buffer) -> RefTensor {
        let size = aval.dtype.size();
        let data = buffer.bytes().chunks_exact(size).map(|b| Scalar::from_bytes(aval.dtype, b)).collect();
        RefTensor { aval: aval.clone(), data }
    }

    /// To a buffer.
    pub fn to_buffer(&self) -> Result<Buffer> {
        let size = self.aval.dtype.size();
        let mut bytes = Vec::with_capacity(self.aval.bytes());
        for s in &self.data {
            bytes.extend_from_slice(&s.to_bytes()[..size]);
        }
        Buffer::from_bytes(&bytes)
    }
}

/// Moves a multi-index to the next element in row-major order.
pub fn advance(index: &mut [usize], dims: &[usize]) {
    for i in (0..index.len()).rev() {
        index[i] += 1;
        if index[i] < dims[i] {
            return;
        }
        index[i] = 0;
    }
}
