// A kernel of most functions of the language: every supported compiler takes it.
#include "weft/kernel.h"

#include "kernel/language/kernels.h"

namespace k = weft::k;

template void test_kernels::matmul_bias_relu(const k::In<k::bf16, 2>&, const k::In<k::bf16, 2>&, const k::In<float, 1>&,
                                             const k::Out<k::bf16, 2>&, test_kernels::Tiles);
template void test_kernels::attention(const k::In<float, 2>&, const k::In<float, 2>&, const k::In<float, 2>&,
                                      const k::Out<float, 2>&, const k::Out<float, 1>&, int64_t, int64_t, bool);

void values(const k::In<float, 2>& x, const k::Out<float, 2>& y) {
  const auto v = x(k::all, k::ds(0, 8, 2)).load(0.5);
  auto sum = k::abs(v) + k::sqrt(v) + k::rsqrt(v) + k::recip(v) + k::square(v) + k::floor(v) + k::ceil(v) + k::exp(v);
  sum = sum + k::trunc(v) + k::round(v) + k::sign(v) + k::exp2(v) + k::expm1(v) + k::log(v) + k::log2(v) + k::sin(v);
  sum = sum + k::log1p(v) + k::cos(v) + k::tanh(v) + k::erf(v) + k::sigmoid(v) + k::pow(v, 2) + k::fma(v, 2, sum);
  sum = k::maximum(k::minimum(sum, 1.0), v) * 2 / 3 - 1;
  y(k::all, k::all) = k::where(!(v > 0) & (sum < v), sum, -v);
  const auto whole = k::cast<int32_t>(v);
  y(k::all, k::all).store(k::bitcast<float>((whole << 2 >> 1 | 3) ^ (whole % 5) ^ ~whole), v == v);
  const auto moved = k::permute(k::reshape(v, {2, 2, 8}), {2, 0, 1}) + k::broadcast_to(k::scalar<float>(1), {8, 2, 2});
  const auto halves = k::split(k::join(moved, moved));
  const auto ends = k::cat(k::flip(halves.first, 0), k::trans(halves.second), 0);
  const auto part = k::slice(ends, {0, 0, 0}, {4, 2, 2}, {2, 1, 1});
  const auto line = k::reshape(k::interleave(part, part), {32});
  y(0, k::all) = k::take(line, k::mod(k::arange(8), 4), 0) + k::sum(line) + k::max(line, 0) + k::min(line);
  y(1, k::all) = k::cumsum(k::cumprod(k::cummax(k::cummin(k::topk(k::sort(line), 8), 0), 0), 0), 0, true);
  const auto [keys, order] = k::sort_by(line, k::arange(32));
  const auto counts = k::histogram(k::argmax(k::row(keys), 0) + k::argmin(k::row(keys), 0), 8);
  const auto product = k::reduce(line, 0, [](auto a, auto b) { return a * b; });
  const auto both = k::reduce(line, order, 0, [](auto a, auto b, auto c, auto d) { return std::pair(a + c, b * d); });
  y(2, k::all) = k::cast<float>(counts) * product + both.first + k::logsumexp(line, 0) + k::prod(line, 0);
  const auto running = k::scan(line, 0, [](auto a, auto b) { return k::maximum(a, b); });
  y(3, k::ds(0, 32)) = running + k::rand(k::scalar<uint64_t>(1), order) + k::randn(k::scalar<uint64_t>(1), order);
}

void control(const k::In<float, 2>& x, const k::InOut<float, 1>& y) {
  const k::Index i = k::assume_range(k::assume_multiple(k::program_id(0) * 4, 4), 0, 64) + k::cdiv(k::program_id(1), 2);
  k::Mut sum = x(i, k::all);
  k::Mut count = k::scalar<int64_t>(0);
  k::loop(0, x.dim(0), 2, [&](k::Index j) { sum += x(j, k::all); });
  k::loop(x.dim(-1), [&](k::Index) { sum -= 1, sum *= 2, sum /= 3; });
  k::static_for(2, [&](int64_t n) { sum = sum + n; });
  k::while_([&] { return count < 4; }, [&] { count += 1; });
  k::when(k::all(sum > 0) | k::any(sum < 0), [&] { y(k::all) += sum; });
  k::if_else(
      count == 4, [&] { y(0) = k::sum(sum); }, [&] { y(k::ds(count, 1)) = 0; });
  const auto chosen = k::if_else(
      count == 4, [&] { return k::sum(sum); }, [&] { return k::max(sum); });
  k::print("sum", sum, chosen);
  k::check(sum == sum, "is a number");
  const auto buffer = k::scratch<float>({4, 8});
  k::scatter(buffer, k::gather(x, k::arange(4), i), k::arange(4), k::arange(4));
  k::atomic("add", y, x.permute({1, 0}).broadcast({2, 8, 4})(0, k::all, 0).load(), k::arange(8));
  y(k::all) = buffer(0, k::all);
  y(k::all) = y(k::all) - buffer(1, k::all);
}
