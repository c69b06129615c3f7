  // Slots of tiles: the left operand's, then the right one's, in pieces of 16 bytes, which are exchanged within
  // their row (or within eight of it) so that eight rows that are read together lie in different banks.
  typedef fx_pack<unsigned, 4> Piece;
  const int slot = (@ROWS + @COLUMNS) * 4;
  __shared__ Piece tiles[3 * slot];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = warp / @ACROSS * @OWN_ROWS, column0 = warp % @ACROSS * @OWN_COLUMNS;
  for (I w = blockIdx.x; w < @TOTAL; w += gridDim.x) {
@PLACE
    float sums[@OWN_ROWS / 16][@OWN_COLUMNS / 8][4];
    for (int i = 0; i < @OWN_ROWS / 16; ++i)
      for (int j = 0; j < @OWN_COLUMNS / 8; ++j)
        for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
    auto load = [&](I depth) {
      Piece* to = tiles + depth / @DEPTH % 3 * slot;
@LOAD
    };
    load(0);
    fx_copies_end();
    if (@DEPTH < @K) load(@DEPTH);
    fx_copies_end();
    for (I depth = 0; depth < @K; depth += @DEPTH) {
      fx_copies_wait();
      __syncthreads();
      if (depth + 2 * @DEPTH < @K) load(depth + 2 * @DEPTH);
      fx_copies_end();
      const Piece* x = tiles + depth / @DEPTH % 3 * slot;
      const Piece* y = x + @ROWS * 4;
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned a[@OWN_ROWS / 16][4], b[@OWN_COLUMNS / 8][2];
        #pragma unroll
        for (int i = 0; i < @OWN_ROWS / 16; ++i) {
@LEFT
        }
        #pragma unroll
        for (int j = 0; j < @OWN_COLUMNS / 16; ++j) {
          unsigned both[4];
@RIGHT
          b[2 * j][0] = both[0];
          b[2 * j][1] = both[1];
          b[2 * j + 1][0] = both[2];
          b[2 * j + 1][1] = both[3];
        }
        #pragma unroll
        for (int i = 0; i < @OWN_ROWS / 16; ++i)
          #pragma unroll
          for (int j = 0; j < @OWN_COLUMNS / 8; ++j) @MULTIPLY(sums[i][j], a[i], b[j]);
      }
    }
    // Other warps may still read what the next tile's copies write over.
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < @OWN_ROWS / 16; ++i)
      #pragma unroll
      for (int j = 0; j < @OWN_COLUMNS / 8; ++j)
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float* sum = sums[i][j] + 2 * e;
          const I r = first_row + row0 + i * 16 + lane / 4 + e * 8;
          const I c = first_column + column0 + j * 8 + lane % 4 * 2;
@STORE
        }
  }
