// Classifiers of images: a vision transformer, ResNet-18, an MLP-Mixer, a ConvNeXt. Images are [batch, height, width,
// 3].
#include "tools/weft/bench/workloads/model.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

std::vector<array> labelled_images(const Sizes& s) {
  const int side = s("image");
  return {random::normal({s("batch"), side, side, 3}, s.dtype()), random_ids(s("classes"), {s("batch")})};
}

/// Cuts images into patches, each projected to a vector: [batch, patches, width].
struct Patches : nn::Module {
  Patches(nn::Module& parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)), conv(*this, "conv", 3, s("width"), {s("patch")}, {.stride = {s("patch")}}) {}
  array operator()(const array& images) const {
    const array x = conv(images);
    return reshape(x, {x.shape(0), -1, x.shape(3)});
  }
  static int count(const Sizes& s) { return (s("image") / s("patch")) * (s("image") / s("patch")); }
  nn::Conv2d conv;
};

struct GeluMlp : nn::Module {
  GeluMlp(nn::Module& parent, std::string name, int width, int hidden)
      : Module(parent, std::move(name)), up(*this, "up", width, hidden), down(*this, "down", hidden, width) {}
  array operator()(const array& x) const { return down(nn::gelu(up(x))); }
  nn::Linear up, down;
};

struct VitBlock : nn::Module {
  VitBlock(nn::Module& parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)), ln_1(*this, "ln_1", s("width")), attn(*this, "attn", s("width"), s("heads")),
        ln_2(*this, "ln_2", s("width")), mlp(*this, "mlp", s("width"), 4 * s("width")) {}
  array operator()(const array& x) const {
    const array attended = x + attn(ln_1(x));
    return attended + mlp(ln_2(attended));
  }
  nn::LayerNorm ln_1;
  nn::SelfAttention attn;
  nn::LayerNorm ln_2;
  GeluMlp mlp;
};

struct Vit : nn::Module {
  explicit Vit(const Sizes& s)
      : patches(*this, "patches", s), token(*this, "token", nn::init::normal({1, 1, s("width")}, 0, 0.02f)),
        positions(*this, "positions", nn::init::normal({Patches::count(s) + 1, s("width")}, 0, 0.02f)), h(*this, "h"),
        ln(*this, "ln", s("width")), head(*this, "head", s("width"), s("classes")) {
    for (int i = 0; i < s("layers"); ++i) h.add(s);
  }
  std::vector<array> batch(const Sizes& s) const { return labelled_images(s); }
  array loss(const std::vector<array>& in) const {
    const array cut = patches(in[0]), first = broadcast_to(token, {cut.shape(0), 1, cut.shape(2)});
    array x = concatenate({first, cut}, 1) + positions;
    for (size_t i = 0; i < h.size(); ++i) x = h[i](x);
    return mean_cross_entropy(head(ln(take(x, 0, 1))), in[1]);
  }
  Patches patches;
  nn::Parameter token, positions;
  nn::List<VitBlock> h;
  nn::LayerNorm ln;
  nn::Linear head;
};

/// Two convolutions of 3 × 3 with batch norms, added to the input (He et al. 2016).
struct ResidualPair : nn::Module {
  ResidualPair(nn::Module& parent, std::string name, int in, int out, int step)
      : Module(parent, std::move(name)),
        conv1(*this, "conv1", in, out, {3}, {.stride = {step}, .padding = {1}, .bias = false}), bn1(*this, "bn1", out),
        conv2(*this, "conv2", out, out, {3}, {.padding = {1}, .bias = false}), bn2(*this, "bn2", out) {
    if (in == out && step == 1) return;
    shortcut.emplace(*this, "shortcut", in, out, std::vector<int>{1}, nn::ConvOptions{.stride = {step}, .bias = false});
    bn3.emplace(*this, "bn3", out);
  }
  array operator()(const array& x) const {
    const array y = bn2(conv2(nn::relu(bn1(conv1(x)))));
    return nn::relu(y + (shortcut ? (*bn3)((*shortcut)(x)) : x));
  }
  nn::Conv2d conv1;
  nn::BatchNorm bn1;
  nn::Conv2d conv2;
  nn::BatchNorm bn2;
  std::optional<nn::Conv2d> shortcut;
  std::optional<nn::BatchNorm> bn3;
};

/// ResNet-18 for small images: a first convolution of 3 × 3 without pooling.
struct ResNet : nn::Module {
  explicit ResNet(const Sizes& s)
      : stem(*this, "stem", 3, s("width"), {3}, {.padding = {1}, .bias = false}), bn(*this, "bn", s("width")),
        blocks(*this, "blocks"), head(*this, "head", 8 * s("width"), s("classes")) {
    int in = s("width");
    for (int stage = 0; stage < 4; ++stage) {
      const int out = s("width") << stage;
      blocks.add(in, out, stage == 0 ? 1 : 2);
      blocks.add(out, out, 1);
      in = out;
    }
  }
  std::vector<array> batch(const Sizes& s) const { return labelled_images(s); }
  array loss(const std::vector<array>& in) const {
    array x = nn::relu(bn(stem(in[0])));
    for (size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x);
    return mean_cross_entropy(head(mean(x, {1, 2})), in[1]);
  }
  nn::Conv2d stem;
  nn::BatchNorm bn;
  nn::List<ResidualPair> blocks;
  nn::Linear head;
};

/// An MLP over patches, then one over channels (Tolstikhin et al. 2021).
struct MixerBlock : nn::Module {
  MixerBlock(nn::Module& parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)), ln_1(*this, "ln_1", s("width")),
        tokens(*this, "tokens", Patches::count(s), s("token_hidden")), ln_2(*this, "ln_2", s("width")),
        channels(*this, "channels", s("width"), s("hidden")) {}
  array operator()(const array& x) const {
    const array mixed = x + swapaxes(tokens(swapaxes(ln_1(x), 1, 2)), 1, 2);
    return mixed + channels(ln_2(mixed));
  }
  nn::LayerNorm ln_1;
  GeluMlp tokens;
  nn::LayerNorm ln_2;
  GeluMlp channels;
};

struct Mixer : nn::Module {
  explicit Mixer(const Sizes& s)
      : patches(*this, "patches", s), h(*this, "h"), ln(*this, "ln", s("width")),
        head(*this, "head", s("width"), s("classes")) {
    for (int i = 0; i < s("layers"); ++i) h.add(s);
  }
  std::vector<array> batch(const Sizes& s) const { return labelled_images(s); }
  array loss(const std::vector<array>& in) const {
    array x = patches(in[0]);
    for (size_t i = 0; i < h.size(); ++i) x = h[i](x);
    return mean_cross_entropy(head(mean(ln(x), 1)), in[1]);
  }
  Patches patches;
  nn::List<MixerBlock> h;
  nn::LayerNorm ln;
  nn::Linear head;
};

/// A depthwise convolution of 7 × 7, a norm and an MLP, scaled by channel and added to the input (Liu et al. 2022).
struct ConvNextBlock : nn::Module {
  ConvNextBlock(nn::Module& parent, std::string name, int width)
      : Module(parent, std::move(name)), conv(*this, "conv", width, width, {7}, {.padding = {3}, .groups = width}),
        ln(*this, "ln", width), mlp(*this, "mlp", width, 4 * width),
        scale(*this, "scale", nn::init::constant({width}, 0.1f)) {}
  array operator()(const array& x) const { return x + mlp(ln(conv(x))) * scale; }
  nn::Conv2d conv;
  nn::LayerNorm ln;
  GeluMlp mlp;
  nn::Parameter scale;
};

struct ConvNextStage : nn::Module {
  ConvNextStage(nn::Module& parent, std::string name, int in, int out, int count)
      : Module(parent, std::move(name)), blocks(*this, "blocks") {
    if (in == 3) {
      down.emplace(*this, "down", in, out, std::vector<int>{4}, nn::ConvOptions{.stride = {4}});
      ln.emplace(*this, "ln", out);
    } else {
      ln.emplace(*this, "ln", in);
      down.emplace(*this, "down", in, out, std::vector<int>{2}, nn::ConvOptions{.stride = {2}});
    }
    for (int i = 0; i < count; ++i) blocks.add(out);
    first = in == 3;
  }
  array operator()(const array& x) const {
    array y = first ? (*ln)((*down)(x)) : (*down)((*ln)(x));
    for (size_t i = 0; i < blocks.size(); ++i) y = blocks[i](y);
    return y;
  }
  bool first = false;
  std::optional<nn::Conv2d> down;
  std::optional<nn::LayerNorm> ln;
  nn::List<ConvNextBlock> blocks;
};

struct ConvNext : nn::Module {
  explicit ConvNext(const Sizes& s)
      : stages(*this, "stages"), ln(*this, "ln", 8 * s("width")), head(*this, "head", 8 * s("width"), s("classes")) {
    for (int i = 0; i < 4; ++i)
      stages.add(i == 0 ? 3 : s("width") << (i - 1), s("width") << i, (i == 2 ? 3 : 1) * s("depth"));
  }
  std::vector<array> batch(const Sizes& s) const { return labelled_images(s); }
  array loss(const std::vector<array>& in) const {
    array x = in[0];
    for (size_t i = 0; i < stages.size(); ++i) x = stages[i](x);
    return mean_cross_entropy(head(ln(mean(x, {1, 2}))), in[1]);
  }
  nn::List<ConvNextStage> stages;
  nn::LayerNorm ln;
  nn::Linear head;
};

}  // namespace

void add_vision_models(WorkloadMakers& makers) {
  makers["vit"] = workload_of<Vit>;
  makers["resnet"] = workload_of<ResNet>;
  makers["mixer"] = workload_of<Mixer>;
  makers["convnext"] = workload_of<ConvNext>;
}

}  // namespace weft::tool
