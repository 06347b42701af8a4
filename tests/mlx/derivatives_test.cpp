// Derivatives and batched functions: tests/mlx/generate/derivatives.py.
#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/einsum.h"
#include "weft/fft.h"
#include "weft/indexing.h"
#include "weft/linalg.h"
#include "weft/ops.h"

namespace weft::test {
namespace {

using Unary = array (*)(const array&, StreamOrDevice);
using Binary = array (*)(const array&, const array&, StreamOrDevice);
using Function = std::function<array(const array&)>;

Arrays joined(std::initializer_list<Arrays> lists) {
  Arrays all;
  for (const Arrays& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

ArrayFunction listed(const Function& f) {
  return [f](const Arrays& a) { return Arrays{f(a[0])}; };
}
ArrayFunction listed(Binary f) {
  return [f](const Arrays& a) { return Arrays{f(a[0], a[1], {})}; };
}
Arrays gradient_of(const Function& f, const array& x) {
  return gradient([&](const Arrays& a) { return f(a[0]); }, {x});
}
Arrays gradient_of(Binary f, const array& x, const array& y) {
  return gradient([&](const Arrays& a) { return f(a[0], a[1], {}); }, {x, y});
}
UnaryFunction total(const Function& f) {
  return [f](const array& a) { return sum(f(a)); };
}

std::vector<Assertion> real_functions() {
  const std::pair<const char*, Unary> functions[] = {
      {"abs", abs},
      {"cos", cos},
      {"cosh", cosh},
      {"degrees", degrees},
      {"erf", erf},
      {"exp", exp},
      {"expm1", expm1},
      {"log", log},
      {"log10", log10},
      {"log1p", log1p},
      {"log2", log2},
      {"negative", negative},
      {"radians", radians},
      {"reciprocal", reciprocal},
      {"rsqrt", rsqrt},
      {"sigmoid", sigmoid},
      {"sin", sin},
      {"sinh", sinh},
      {"sqrt", sqrt},
      {"square", square},
      {"tan", tan},
      {"tanh", tanh},
      {"arctan", arctan},
      {"arcsinh", arcsinh},
      {"softmax", [](const array& x, StreamOrDevice) { return softmax(x); }},
      {"logsumexp", [](const array& x, StreamOrDevice) { return logsumexp(x); }},
      {"arccos", arccos},
      {"arcsin", arcsin},
      {"arctanh", arctanh},
      {"erfinv", erfinv},
      {"arccosh", arccosh}};
  std::vector<Assertion> cases;
  for (const auto& [name, op] : functions) {
    Function f = [op = op](const array& x) { return op(x, {}); };
    cases.push_back({std::string("unary ") + name,
                     [f](const Arrays& in) {
                       const array &x = in[0], &t = in[1];
                       array y = f(x);
                       return joined({gradient_of(f, x),
                                      vjp(listed(f), {x}, {y * 0.0f + 2.0f}).second,
                                      jvp(listed(f), {x}, {t}).second,
                                      {grad(total(grad(total(f))))(x)}});
                     },
                     {64, 1, false}});
  }
  const std::pair<const char*, Binary> binaries[] = {{"add", add},
                                                     {"subtract", subtract},
                                                     {"multiply", multiply},
                                                     {"divide", divide},
                                                     {"maximum", maximum},
                                                     {"minimum", minimum},
                                                     {"power", power},
                                                     {"arctan2", arctan2},
                                                     {"logaddexp", logaddexp},
                                                     {"remainder", remainder}};
  for (const auto& [name, f] : binaries)
    cases.push_back(
        {std::string("binary ") + name,
         [f = f](const Arrays& in) {
           const array &x = in[0], &y = in[1], &t = in[2];
           return joined({gradient_of(f, x, y), gradient_of(f, x, index(y, 0)), jvp(listed(f), {x, y}, {t, x}).second});
         },
         {64, 1, false}});
  return cases;
}

std::vector<Assertion> complex_functions() {
  const std::pair<const char*, Unary> functions[] = {{"exp", exp},
                                                     {"log", log},
                                                     {"sqrt", sqrt},
                                                     {"sin", sin},
                                                     {"cos", cos},
                                                     {"tan", tan},
                                                     {"sinh", sinh},
                                                     {"cosh", cosh},
                                                     {"tanh", tanh},
                                                     {"square", square},
                                                     {"reciprocal", reciprocal},
                                                     {"abs", abs},
                                                     {"real", real},
                                                     {"imag", imag},
                                                     {"conjugate", conjugate},
                                                     {"negative", negative}};
  std::vector<Assertion> cases;
  for (const auto& [name, op] : functions) {
    Function f = [op = op](const array& x) { return op(x, {}); };
    cases.push_back({std::string("complex ") + name,
                     [f](const Arrays& in) {
                       const array &z = in[0], &c = in[1];
                       array cotangent = f(z).dtype() == float32 ? real(c) : c;
                       return joined({vjp(listed(f), {z}, {cotangent}).second,
                                      {grad(UnaryFunction([f](const array& a) { return sum(real(f(a))); }))(z)}});
                     },
                     {64, 4, false}});
  }
  const std::pair<const char*, Binary> binaries[] = {
      {"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}, {"power", power}};
  for (const auto& [name, f] : binaries)
    cases.push_back({std::string("complex ") + name + " of two",
                     [f = f](const Arrays& in) {
                       return vjp(listed(f), {in[0], in[1]}, {in[2]}).second;
                     },
                     {64, 4, false}});
  cases.push_back({"complex products", [](const Arrays& in) {
                     auto rows = listed([](const array& a) { return sum(a, 1); });
                     return joined({vjp(listed(matmul), {in[0], in[1]}, {in[2]}).second,
                                    vjp(rows, {in[0]}, {index(in[2], 0)}).second});
                   }});
  cases.push_back({"real by complex", [](const Arrays& in) {
                     return vjp(listed([&](const array& a) { return a * in[1]; }), {in[0]}, {in[2]}).second;
                   }});
  cases.push_back({"fft",
                   [](const Arrays& in) {
                     const array &z = in[0], &c = in[1], &x = in[2], &h = in[3];
                     auto of = [](array (*f)(const array&), const array& at, const array& cotangent) {
                       return vjp(listed(f), {at}, {cotangent}).second;
                     };
                     return joined({of([](const array& a) { return fft::fft(a); }, z, c),
                                    of([](const array& a) { return fft::ifft(a); }, z, c),
                                    of([](const array& a) { return fft::rfft(a); }, x, h),
                                    of([](const array& a) { return fft::irfft(a); }, h, x)});
                   },
                   {64, 4, false}});
  return cases;
}

const std::vector<Assertion> ties = {
    {"ties of two",
     [](const Arrays& in) {
       return joined({gradient_of(maximum, in[0], in[1]), gradient_of(minimum, in[0], in[1])});
     }},
    {"ties of clip",
     [](const Arrays& in) {
       return gradient_of([](const array& y) { return clip(y, array(0.0f), array(1.0f)); }, in[0]);
     }},
    {"ties of reductions",
     [](const Arrays& in) {
       return joined({gradient_of([](const array& y) { return max(y, 1); }, in[0]),
                      gradient_of([](const array& y) { return min(y, 1); }, in[0]),
                      gradient_of([](const array& y) { return max(y); }, in[0])});
     }},
    {"ties of scans",
     [](const Arrays& in) {
       return joined({gradient_of([](const array& y) { return cummax(y, 0); }, in[0]),
                      gradient_of([](const array& y) { return cummin(y, 0); }, in[0])});
     }},
    {"ties of sorts", [](const Arrays& in) { return gradient_of([](const array& y) { return sort(y); }, in[0]); }},
    {"kinks at zero",
     [](const Arrays& in) {
       return joined({gradient_of([](const array& y) { return abs(y); }, in[0]),
                      gradient_of([](const array& y) { return sign(y); }, in[0]),
                      gradient_of([](const array& y) { return square(y); }, in[0]),
                      gradient_of([](const array& y) { return maximum(y, array(0)); }, in[0]),
                      gradient_of([](const array& y) { return minimum(y, array(0)); }, in[0])});
     }},
    {"updates that equal",
     [](const Arrays& in) {
       return gradient([](const Arrays& a) { return at(a[0], array({0, 1})).maximum(a[1]); }, in);
     }},
};

Arrays each(const std::vector<Function>& functions, const array& x) {
  Arrays all;
  for (const Function& f : functions) all.push_back(gradient_of(f, x)[0]);
  return all;
}

const std::vector<Assertion> structures = {
    {"reductions",
     [](const Arrays& in) {
       using A = const array&;
       return each({[](A a) { return sum(a, 1); }, [](A a) { return sum(a); }, [](A a) { return mean(a, 1); },
                    [](A a) { return mean(a); }, [](A a) { return prod(a, 1); }, [](A a) { return prod(a); },
                    [](A a) { return var(a, 1); }, [](A a) { return var(a); }, [](A a) { return std(a, 1); },
                    [](A a) { return std(a); }, [](A a) { return logsumexp(a, 1); }, [](A a) { return logsumexp(a); }},
                   in[0]);
     },
     {64, 1, false}},
    {"scans",
     [](const Arrays& in) {
       using A = const array&;
       return each({[](A a) { return cumsum(a, 1); }, [](A a) { return cumsum(a, 1, true); },
                    [](A a) { return cumprod(a, 1); }, [](A a) { return cumprod(a, 1, true); },
                    [](A a) { return logcumsumexp(a, 1); }, [](A a) { return logcumsumexp(a, 1, true); },
                    [](A a) { return cummax(a, 1); }, [](A a) { return cummax(a, 1, true); }},
                   in[0]);
     },
     {64, 16, false}},
    {"movement",
     [](const Arrays& in) {
       using A = const array&;
       return each({[](A a) { return transpose(a); },
                    [](A a) {
                      return reshape(a, {2, 6});
                    },
                    [](A a) { return index(a, Slice::step(-1), Slice::from(1)); }, [](A a) { return pad(a, 1); },
                    [](A a) {
                      return tile(a, {2, 1});
                    },
                    [](A a) { return roll(a, 2, 1); },
                    [](A a) {
                      return broadcast_to(expand_dims(a, 1), {3, 2, 4});
                    },
                    [](A a) {
                      return concatenate({a, a * 2}, 1);
                    },
                    [](A a) { return repeat(a, 2, 0); },
                    [](A a) {
                      return diag(slice(a, {0, 0}, {3, 3}));
                    },
                    [](A a) {
                      return as_strided(a, {2, 3}, {4, 1}, 1);
                    },
                    [](A a) {
                      return stack({a, a});
                    },
                    [](A a) { return split(a, 2, 1)[1]; }},
                   in[0]);
     }},
    {"products",
     [](const Arrays& in) {
       const array &x = in[0], &m = in[1], &w = in[2];
       return joined({gradient_of(matmul, x, m), gradient_of(matmul, x, w), gradient_of(outer, w, w),
                      gradient_of(inner, x, w),
                      gradient(
                          [](const Arrays& a) {
                            return einsum("ij,jk->ki", {a[0], a[1]});
                          },
                          {x, m}),
                      gradient([](const Arrays& a) { return addmm(a[0], a[1], a[2], 2.0f, 0.5f); },
                               {slice(x, {0, 0}, {3, 2}), x, m})});
     }},
    {"indexing",
     [](const Arrays& in) {
       using A = const array&;
       const array& i = in[1];
       array column = expand_dims(i, 1);
       return each({[&](A a) { return index(a, i); }, [&](A a) { return index(a, Slice(), i); },
                    [&](A a) { return take_along_axis(a, column, 1); }, [&](A a) { return at(a, i).add(a); },
                    [&](A a) { return where(a > 0, a, a * 3); }, [&](A a) { return sort(a, 1); },
                    [&](A a) { return topk(a, 1, 1); },
                    [&](A a) {
                      return put_along_axis(a, column, slice(a, {0, 0}, {3, 1}) * 2, 1);
                    }},
                   in[0]);
     }},
    {"power at zero",
     [](const Arrays& in) {
       array tail = slice(in[0], {1}, {3});
       return joined({gradient_of([](const array& a) { return power(a, array(2)); }, in[0]),
                      gradient_of([&](const array& b) { return power(tail, slice(b, {1}, {3})); }, in[1]),
                      {grad(total([](const array& a) { return power(a, array(3.0f)); }))(in[0])}});
     }},
    {"casts",
     [](const Arrays& in) {
       return each({[](const array& a) { return astype(astype(a, float16), float32) * 2; },
                    [](const array& a) { return view(stop_gradient(a), float32) * a; },
                    [](const array& a) { return floor(a) * a; }},
                   in[0]);
     },
     {2, 0, false}},
    {"through integers",
     [](const Arrays& in) {
       return vjp(listed([](const array& a) { return astype(a, int32); }), in, {array({2, 3})}).second;
     }},
    {"value_and_grad",
     [](const Arrays& in) {
       auto [value, gradients] =
           value_and_grad(ScalarFunction([](const Arrays& a) { return sum(sin(matmul(a[0], a[1]))); }), {0, 1})(in);
       return joined({{value}, gradients});
     }},
    {"higher orders",
     [](const Arrays& in) {
       UnaryFunction s = [](const array& x) { return sin(x) * x; };
       UnaryFunction fourth = [](const array& x) { return power(x, array(4)); };
       auto slope = grad(total([](const array& a) { return power(tanh(a), array(2)); }));
       return joined({{grad(grad(grad(s)))(index(in[0], 0)), vmap(grad(grad(fourth)))(in[0])},
                      jvp(listed(slope), in, {in[0] * in[0]}).second});
     },
     {64, 4, false}},
    {"checkpoint",
     [](const Arrays& in) {
       auto f = checkpoint(listed([](const array& a) { return exp(sin(a)); }));
       return gradient_of([&](const array& a) { return f({a})[0]; }, in[0]);
     }},
    {"custom vjp",
     [](const Arrays& in) {
       auto scaled = custom_vjp([](const Arrays& a) { return Arrays{a[0] * sin(a[1])}; },
                                [](const Arrays& primals, const Arrays& cotangents, const Arrays&) {
                                  return Arrays{cotangents[0] * 2, cotangents[0] * primals[0]};
                                });
       return joined({scaled(in), gradient([&](const Arrays& a) { return scaled(a)[0]; }, in)});
     }},
};

UnaryFunction one(array (*f)(const array&)) { return f; }
BinaryFunction two(array (*f)(const array&, const array&)) { return f; }

const std::vector<Assertion> batched = {
    {"vmap",
     [](const Arrays& in) {
       using A = const array&;
       const array &x = in[0], &m = in[1], &v = in[2];
       BinaryFunction product = two([](A a, A b) { return matmul(a, b); }), plus = two([](A a, A b) { return a + b; });
       return Arrays{vmap(product)(x, m),
                     vmap(one([](A a) { return sum(a); }))(x),
                     vmap(plus, 1, -1)(x, index(x, Slice(), 0)),
                     vmap(plus, 0, -1)(x, v),
                     vmap(one([](A a) { return a * 2; }), 0, 1)(x),
                     vmap(vmap(one([](A a) { return a * a + 1; })))(x),
                     vmap(one([](A a) { return softmax(a); }))(x),
                     vmap(one([](A a) { return cumsum(a); }))(x),
                     vmap(one([](A a) { return sort(a); }))(x),
                     vmap(one([](A a) {
                       return reshape(a, {2, 2});
                     }))(x),
                     vmap(one([](A a) { return flip(a); }))(x),
                     vmap(one([](A a) {
                       return concatenate({a, a});
                     }))(x),
                     vmap(one([](A a) { return argmax(a); }))(x),
                     vmap(one([](A a) { return max(a); }), 1)(x),
                     vmap(two([](A a, A b) { return outer(a, b); }))(x, x)};
     }},
    {"vmap of indexing",
     [](const Arrays& in) {
       using A = const array&;
       const array &x = in[0], &i = in[1];
       array column = index(x, Slice(), 0);
       UnaryFunction chosen = [&](A k) { return index(column, minimum(k, array(2))); };
       return Arrays{vmap(two([](A a, A k) { return index(a, k); }))(x, i),
                     vmap(two([](A a, A k) { return take(a, k); }), -1, 0)(index(x, 0), i),
                     vmap(two([](A a, A k) { return at(a, k).add(array(1.0f)); }))(x, i), vmap(chosen)(i),
                     vmap(two([](A a, A k) { return take_along_axis(a, k, 0); }))(x, i)};
     }},
    {"gradients of each",
     [](const Arrays& in) {
       const array &x = in[0], &v = in[1];
       auto sines = grad(total([&](const array& a) { return sin(a) * v; }));
       ScalarFunction product = [](const Arrays& a) { return sum(exp(a[0] * a[1])); };
       return Arrays{vmap(sines)(x), vmap(grad(product), {0, -1})({x, v})[0]};
     }},
    {"vmap of linear algebra",
     [](const Arrays& in) {
       using A = const array&;
       return Arrays{
           vmap(one([](A a) { return linalg::norm(a); }))(in[0]), vmap(one([](A a) { return linalg::inv(a); }))(in[1]),
           vmap(one([](A a) { return linalg::cholesky(a); }))(in[1]), vmap(one([](A a) { return fft::fft(a); }))(in[0]),
           vmap(one([](A a) { return linalg::norm(a, 1.0); }))(in[0])};
     },
     {64, 4, false}},
};

}  // namespace

TEST_CASE("derivatives as in MLX") {
  std::vector<Assertion> all = real_functions();
  for (const auto& more : {complex_functions(), ties, structures, batched})
    all.insert(all.end(), more.begin(), more.end());
  check_assertions("derivatives", all);
}

}  // namespace weft::test
