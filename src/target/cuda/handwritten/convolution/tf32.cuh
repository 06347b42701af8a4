// Float32 operands for tensor cores in TF32.
//
// Tensor cores cut off the 13 low bits, which TF32 does not keep, so that every operand comes out smaller. The factor
// adds what they cut off on average (ln 2 of half a unit in the last place): sums then lean to neither side, as they
// would with a rounding of each operand (cvt.rna.tf32), in one multiplication. What TF32 holds exactly stays as it is.
FN u32 nearly_tf32(u32 v) { return bits(real(v) * 1.00033838f); }
FN W16 nearly_tf32(W16 v) { return {nearly_tf32(v.x), nearly_tf32(v.y), nearly_tf32(v.z), nearly_tf32(v.w)}; }
