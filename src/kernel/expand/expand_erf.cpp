// The error function and its inverse. Minimax polynomials, with their errors over the interval:
//
//   erf     |x| < 1: x + x P(x^2), P of degree 5, 4.0e-8 relative; |x| >= 1: 1 - 2^L(|x|), L = log2(erfc) of degree 5,
//           1.6e-8 absolute, 2^f of degree 5 on |f| <= 1/2, 9.4e-8. No division, and 1 comes out exactly from 4 on
//   erfinv  x G(w), w = -log(1 - x^2) (Giles 2010, with polynomials of our own): degree 8 in w - 2.5 for w < 5, 9.5e-8;
//           degree 8 in sqrt(w) - 3 up to w = 16, 6.7e-8
//   erfinv in float64 (the C library has none): degrees 22, 18 and 16 on w < 6.25, w < 16 and w < 37, 2.4e-16
//
// Largest errors in float32 over a sixteenth of all values or more: erf 1.47 ulp, erfinv 3.31 ulp.
#include <limits>

#include "kernel/expand/expand_emit.h"

namespace weft::kernel::expansion {
namespace {

// +-1 gives infinity, what lies outside NaN.
Expr within_one(Expr x, Expr y) {
  const Expr size = abs(x);
  const Expr end =
      select(eq(size, 1.0), x * std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  return select(lt(size, 1.0), y, end);
}

}  // namespace

Expr erf(Expr x) {
  const Expr t = apply(ScalarOp::min, {abs(x), 4.0});
  const Expr p = horner(t * t, {-0.0005628279759548604, 0.004916745703667402, -0.026710573583841324,
                                0.11280151456594467, -0.37612321972846985, 0.12837912142276764});
  const Expr l = horner(t, {-0.001659700646996498, 0.02132028341293335, -0.12787200510501862, -0.9442280530929565,
                            -1.612122893333435, -0.003854470094665885});
  const Expr shifted = l + shifter;
  const Expr e = horner(l - (shifted - shifter), {0.0013272322248667479, 0.009671434760093689, 0.05550704523921013,
                                                  0.24022243916988373, 0.6931470036506653, 1});
  const Expr tail = fma(e, power_of_two(shifted, minus_one_bits), 1.0);
  return with_sign(select(lt(t, 1.0), fma(t, p, t), tail), x);
}

Expr erfinv(Expr x) {
  const Expr w = -log_of_normal(fma(-x, x, 1.0));
  const Expr central = horner(w - 2.5, {2.8490026338090502e-08, 3.440430020873464e-07, -3.527969056449365e-06,
                                        -4.400566012918716e-06, 0.0002185963385272771, -0.0012536938302218914,
                                        -0.004177693277597427, 0.24664071202278137, 1.5014094114303589});
  const Expr tail = horner(sqrt(w) - 3.0, {-0.00020196470723021775, 0.0001003080396912992, 0.001355367130599916,
                                           -0.0036728770937770605, 0.005734311882406473, -0.007622758857905865,
                                           0.009440342895686626, 1.0016741752624512, 2.832976818084717});
  return within_one(x, x * select(lt(w, 5.0), central, tail));
}

Expr erfinv_double(Expr x) {
  const Expr w = -log(fma(-x, x, 1.0));
  const Expr central = horner(
      w - 3.125, {-4.2383888312188725e-21, -1.6973831589581114e-19, 1.3169837710742724e-18,  1.1222314017101147e-17,
                  -1.3401721570611333e-16, 1.9525368049700042e-17,  6.646449035975021e-15,   -4.052740791635722e-14,
                  -8.158724538253595e-14,  2.633367537299826e-12,   -1.2974804411294175e-11, -5.415342092387815e-11,
                  1.0512112889597634e-09,  -4.112636164195337e-09,  -2.9070368257290565e-08, 4.2347878243666667e-07,
                  -1.3654692014767259e-06, -1.3882523367245536e-05, 0.0001867342080341685,   -0.0007407025341639662,
                  -0.006033670871429746,   0.24015818242558923,     1.6536545626831027});
  const Expr root = sqrt(w);
  const Expr middle =
      horner(root - 3.25, {3.033461085124036e-09, 9.113055984869592e-08, -2.7717424667279894e-07, 1.731019543232755e-08,
                           1.504746365562341e-06, -4.0129102656883435e-06, 2.92238350574744e-06, 1.2474776613536903e-05,
                           -4.7317914053080514e-05, 6.828501941260854e-05, 2.403105965146583e-05,
                           -0.0003550375512863484, 0.0009532893834348507, -0.0016882755529033396, 0.002491442096090806,
                           -0.0037512085077194253, 0.00537091455358111, 1.0052589676941617, 3.0838856104922208});
  const Expr tail =
      horner(root - 5.0, {-7.082566721529665e-12, -2.4655344446595476e-10, 1.4286675431885484e-09,
                          -3.823825212658063e-09, 7.74143802876091e-09, -1.4907774519191715e-08, 2.904462809841753e-08,
                          -6.775229869129131e-08, 2.29051324078555e-07, -9.929661758231727e-07, 4.526051406769928e-06,
                          -1.9681781569379782e-05, 7.599527832471056e-05, -0.00021503011898425757,
                          -0.00013871931839167656, 1.0103004648645262, 4.849906401408584});
  return within_one(x, x * select(lt(w, 6.25), central, select(lt(w, 16.0), middle, tail)));
}

}  // namespace weft::kernel::expansion
