// Models that make images: a U-Net, an autoencoder of DCGAN's parts, a variational autoencoder.
#include "tools/weft/bench/workloads/model.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

/// Two convolutions of 3 × 3, each after a group norm and silu, added to the input.
struct NormedPair : nn::Module {
  NormedPair(nn::Module& parent, std::string name, int in, int out, int groups)
      : Module(parent, std::move(name)), gn1(*this, "gn1", groups, in, {.pytorch_compatible = true}),
        conv1(*this, "conv1", in, out, {3}, {.padding = {1}}),
        gn2(*this, "gn2", groups, out, {.pytorch_compatible = true}),
        conv2(*this, "conv2", out, out, {3}, {.padding = {1}}) {
    if (in != out) shortcut.emplace(*this, "shortcut", in, out, std::vector<int>{1});
  }
  array operator()(const array& x) const {
    const array y = conv2(nn::silu(gn2(conv1(nn::silu(gn1(x))))));
    return y + (shortcut ? (*shortcut)(x) : x);
  }
  nn::GroupNorm gn1;
  nn::Conv2d conv1;
  nn::GroupNorm gn2;
  nn::Conv2d conv2;
  std::optional<nn::Conv2d> shortcut;
};

struct UNetLevel : nn::Module {
  UNetLevel(nn::Module& parent, std::string name, int width, int groups)
      : Module(parent, std::move(name)), before(*this, "before", width, width, groups),
        down(*this, "down", width, 2 * width, {3}, {.stride = {2}, .padding = {1}}), bigger(*this, "bigger"),
        up(*this, "up", 2 * width, width, {3}, {.padding = {1}}), after(*this, "after", 2 * width, width, groups) {}
  NormedPair before;
  nn::Conv2d down;
  nn::Upsample bigger;
  nn::Conv2d up;
  NormedPair after;
};

/// A U-Net (Ronneberger et al. 2015) in the form of diffusion models: predicts the noise of an image.
struct UNet : nn::Module {
  explicit UNet(const Sizes& s)
      : first(*this, "first", 3, s("width"), {3}, {.padding = {1}}), levels(*this, "levels"),
        middle(*this, "middle", s("width") << (s("levels") - 1), s("width") << (s("levels") - 1), s("groups")),
        gn(*this, "gn", s("groups"), s("width"), {.pytorch_compatible = true}),
        last(*this, "last", s("width"), 3, {3}, {.padding = {1}}) {
    for (int i = 0; i + 1 < s("levels"); ++i) levels.add(s("width") << i, s("groups"));
  }
  std::vector<array> batch(const Sizes& s) const {
    const Shape shape{s("batch"), s("image"), s("image"), 3};
    return {random::normal(shape, s.dtype()), random::normal(shape, s.dtype())};
  }
  array loss(const std::vector<array>& in) const {
    array x = first(in[0]);
    std::vector<array> kept;
    for (size_t i = 0; i < levels.size(); ++i) {
      x = levels[i].before(x);
      kept.push_back(x);
      x = levels[i].down(x);
    }
    x = middle(x);
    for (size_t i = levels.size(); i-- > 0;)
      x = levels[i].after(concatenate({levels[i].up(levels[i].bigger(x)), kept[i]}, -1));
    return nn::losses::mse_loss(last(nn::silu(gn(x))), in[1]);
  }
  nn::Conv2d first;
  nn::List<UNetLevel> levels;
  NormedPair middle;
  nn::GroupNorm gn;
  nn::Conv2d last;
};

struct HalvingConvolution : nn::Module {
  HalvingConvolution(nn::Module& parent, std::string name, int in, int out)
      : Module(parent, std::move(name)),
        conv(*this, "conv", in, out, {4}, {.stride = {2}, .padding = {1}, .bias = false}), bn(*this, "bn", out) {}
  array operator()(const array& x) const { return nn::leaky_relu(bn(conv(x)), 0.2f); }
  nn::Conv2d conv;
  nn::BatchNorm bn;
};

struct DoublingConvolution : nn::Module {
  DoublingConvolution(nn::Module& parent, std::string name, int in, int out, int step, int padding)
      : Module(parent, std::move(name)),
        conv(*this, "conv", in, out, {4}, {.stride = {step}, .padding = {padding}, .bias = false}),
        bn(*this, "bn", out) {}
  array operator()(const array& x) const { return nn::relu(bn(conv(x))); }
  nn::ConvTranspose2d conv;
  nn::BatchNorm bn;
};

/// DCGAN's discriminator as an encoder and its generator as a decoder (Radford et al. 2016).
struct ConvolutionalAutoencoder : nn::Module {
  explicit ConvolutionalAutoencoder(const Sizes& s) : encoder(*this, "encoder"), decoder(*this, "decoder") {
    const int width = s("width"), latent = s("latent");
    int levels = 0;
    while ((4 << levels) < s("image")) ++levels;
    for (int i = 0; i < levels; ++i) encoder.add(i == 0 ? 3 : width << (i - 1), width << i);
    code.emplace(*this, "code", width << (levels - 1), latent, std::vector<int>{4});
    decoder.add(latent, width << (levels - 1), 1, 0);
    for (int i = levels - 1; i > 0; --i) decoder.add(width << i, width << (i - 1), 2, 1);
    last.emplace(*this, "last", width, 3, std::vector<int>{4}, nn::ConvTransposeOptions{.stride = {2}, .padding = {1}});
  }
  std::vector<array> batch(const Sizes& s) const {
    return {tanh(random::normal({s("batch"), s("image"), s("image"), 3}, s.dtype()))};
  }
  array loss(const std::vector<array>& in) const {
    array x = in[0];
    for (size_t i = 0; i < encoder.size(); ++i) x = encoder[i](x);
    x = (*code)(x);
    for (size_t i = 0; i < decoder.size(); ++i) x = decoder[i](x);
    return nn::losses::mse_loss(tanh((*last)(x)), in[0]);
  }
  nn::List<HalvingConvolution> encoder;
  std::optional<nn::Conv2d> code;
  nn::List<DoublingConvolution> decoder;
  std::optional<nn::ConvTranspose2d> last;
};

/// Two linear layers down to mean and variance, a draw, two layers up (Kingma and Welling 2014).
struct VariationalAutoencoder : nn::Module {
  explicit VariationalAutoencoder(const Sizes& s)
      : e1(*this, "e1", s("inputs"), s("hidden")), e2(*this, "e2", s("hidden"), s("hidden")),
        mu(*this, "mu", s("hidden"), s("latent")), log_variance(*this, "log_variance", s("hidden"), s("latent")),
        d1(*this, "d1", s("latent"), s("hidden")), d2(*this, "d2", s("hidden"), s("hidden")),
        out(*this, "out", s("hidden"), s("inputs")) {}
  std::vector<array> batch(const Sizes& s) const { return {random::uniform({s("batch"), s("inputs")}, s.dtype())}; }
  array loss(const std::vector<array>& in) const {
    using nn::losses::Reduction;
    const array h = nn::relu(e2(nn::relu(e1(in[0])))), m = mu(h), v = log_variance(h);
    const array z = m + exp(v * array(0.5f, v.dtype())) * random::normal(m.shape(), m.dtype());
    const array y = out(nn::relu(d2(nn::relu(d1(z)))));
    const array likeness = nn::losses::binary_cross_entropy(y, in[0], {.reduction = Reduction::sum});
    const array distance = sum(array(1.0f) + v - square(m) - exp(v)) * array(-0.5f);
    return (likeness + distance) / array(static_cast<float>(static_cast<int64_t>(in[0].shape(0))));
  }
  nn::Linear e1, e2, mu, log_variance, d1, d2, out;
};

}  // namespace

void add_image_models(WorkloadMakers& makers) {
  makers["unet"] = workload_of<UNet>;
  makers["dcgan"] = workload_of<ConvolutionalAutoencoder>;
  makers["vae"] = workload_of<VariationalAutoencoder>;
}

}  // namespace weft::tool
