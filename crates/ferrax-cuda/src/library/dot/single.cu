  // Two slots of both operands' tiles, contracted elements above one another: one is read while the other is written.
  typedef fx_pack<float, 4> Piece;
  __shared__ Piece tiles[2][2][16][33];
  const int down = threadIdx.x / 16, across = threadIdx.x % 16;
  for (I w = blockIdx.x; w < @TOTAL; w += gridDim.x) {
@PLACE
    float sums[8][8];
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) sums[i][j] = 0;
    Piece next[2][2];
    auto fetch = [&](I depth) {
@FETCH
    };
    auto put = [&](int slot) {
@PUT
    };
    fetch(0);
    put(0);
    __syncthreads();
    for (I depth = 0; depth < @K; depth += 16) {
      const int slot = depth / 16 % 2;
      const bool more = depth + 16 < @K;
      if (more) fetch(depth + 16);
      #pragma unroll
      for (int k = 0; k < 16; ++k) {
        const Piece a[2] = {tiles[slot][0][k][down], tiles[slot][0][k][16 + down]};
        const Piece b[2] = {tiles[slot][1][k][across], tiles[slot][1][k][16 + across]};
        #pragma unroll
        for (int i = 0; i < 8; ++i)
          #pragma unroll
          for (int j = 0; j < 8; ++j) sums[i][j] = fx_fma(a[i / 4].x[i % 4], b[j / 4].x[j % 4], sums[i][j]);
      }
      if (more) put(1 - slot);
      __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i)
      #pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float* sum = sums[i] + 4 * j;
        const I r = first_row + i / 4 * 64 + down * 4 + i % 4, c = first_column + j * 64 + across * 4;
@STORE
      }
  }
