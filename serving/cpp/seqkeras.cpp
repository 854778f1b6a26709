#include "seqkeras.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#define ORT_API_MANUAL_INIT  // the library is opened by its path, not linked
#include <onnxruntime_cxx_api.h>

namespace seqkeras {
namespace {

using Json = nlohmann::json;
using Failure = std::runtime_error;
using Ids = std::vector<int64_t>;
using CodePoints = std::vector<utf8proc_int32_t>;
namespace fs = std::filesystem;

constexpr uint32_t kApi = 17;                  // of onnxruntime 1.17; later ones have it too
constexpr int kSchema = 3;                     // the latest manifest that is read
constexpr int64_t kUnknown = 1, kSpecial = 4;  // <pad>, <unk>, <bos>, <eos>, then the characters
constexpr const char* kManifest = "manifest.json";
constexpr const char* kOutputs[] = {"generated_ids", "generated_lengths", "scores"};

// A MatMulInteger of (n, 4) uint8 by a (4, 4) int8 of 127, as in serving/int8.py.
constexpr unsigned char kProduct[] = {
    0x08, 0x04, 0x3a, 0x69, 0x0a, 0x18, 0x0a, 0x01, 0x78, 0x0a, 0x01, 0x77,
    0x12, 0x01, 0x79, 0x22, 0x0d, 0x4d, 0x61, 0x74, 0x4d, 0x75, 0x6c, 0x49,
    0x6e, 0x74, 0x65, 0x67, 0x65, 0x72, 0x12, 0x04, 0x69, 0x6e, 0x74, 0x38,
    0x2a, 0x1b, 0x08, 0x04, 0x08, 0x04, 0x10, 0x03, 0x42, 0x01, 0x77, 0x4a,
    0x10, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
    0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x5a, 0x14, 0x0a, 0x01, 0x78, 0x12, 0x0f,
    0x0a, 0x0d, 0x08, 0x02, 0x12, 0x09, 0x0a, 0x03, 0x12, 0x01, 0x6e, 0x0a,
    0x02, 0x08, 0x04, 0x62, 0x14, 0x0a, 0x01, 0x79, 0x12, 0x0f, 0x0a, 0x0d,
    0x08, 0x06, 0x12, 0x09, 0x0a, 0x03, 0x12, 0x01, 0x6e, 0x0a, 0x02, 0x08,
    0x04, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x0a};
constexpr int32_t kExact = 4 * 255 * 127;

bool OpenLibrary(const std::string& path) {
  setenv("ORT_DISABLE_TELEMETRY", "1", 1);  // is read when the library is opened
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, "OrtGetApiBase") : nullptr;
  if (!symbol) throw Failure(dlerror());
  const OrtApiBase* base = reinterpret_cast<const OrtApiBase* (*)()>(symbol)();
  const OrtApi* api = base->GetApi(kApi);
  if (!api) throw Failure(path + " must be of 1.17 or later; it is " + base->GetVersionString());
  Ort::InitApi(api);
  return true;
}

// Whether int8 products overflow on this machine unless onnxruntime is asked for others: x86
// processors without VNNI add two of them in 16 bits. It is measured once a process.
bool Overflows(const Ort::Env& env) {
  static const bool overflows = [&env] {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    Ort::Session session(env, kProduct, sizeof(kProduct), options);
    std::vector<uint8_t> numbers(4, 255);
    const std::vector<int64_t> shape = {1, 4};
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const auto x = Ort::Value::CreateTensor<uint8_t>(memory, numbers.data(), numbers.size(),
                                                     shape.data(), shape.size());
    const char *input = "x", *output = "y";
    const auto y = session.Run({}, &input, &x, 1, &output, 1);
    const int32_t* found = y[0].GetTensorData<int32_t>();
    return std::any_of(found, found + 4, [](int32_t number) { return number != kExact; });
  }();
  return overflows;
}

// The error of a JSON file; the library says "[json.exception.out_of_range.403] key 'a' not found".
Failure Altered(const fs::path& path, const Json::exception& error) {
  const std::string text = error.what();
  return Failure(path.filename().string() + " is truncated or altered: " +
                 text.substr(text.find("] ") + 2) + "; copy or export the bundle again");
}

Json ReadJson(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) throw Failure(path.filename().string() + " is missing; expected a bundle");
  try {
    return Json::parse(stream);
  } catch (const Json::exception& error) {
    throw Altered(path, error);
  }
}

// The path of a bundle's file, which must be the manifest's.
fs::path Verified(const fs::path& bundle, const Json& manifest, const std::string& name) {
  if (fs::path(name).is_absolute() || name.find("..") != name.npos) {
    throw Failure("the manifest names a file outside of it, " + name);
  }
  std::ifstream stream(bundle / name, std::ios::binary);
  if (!stream) throw Failure(name + " is missing, or can not be read");
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> sum(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(sum.get(), EVP_sha256(), nullptr);
  std::vector<char> part(1 << 16);
  while (stream.read(part.data(), part.size()), stream.gcount()) {
    EVP_DigestUpdate(sum.get(), part.data(), stream.gcount());
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(sum.get(), digest, &size);
  std::string text;
  for (const unsigned char* byte = digest; byte < digest + size; ++byte) {
    for (int digit : {*byte >> 4, *byte & 15}) text += "0123456789abcdef"[digit];
  }
  if (manifest.at("files").at(name).at("sha256") != text) {
    throw Failure(name + " does not have the manifest's sha256: copy the bundle again");
  }
  return bundle / name;
}

// The code points of a text in NFC.
CodePoints Composed(const std::string& text) {
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  CodePoints points(text.size() + 1);
  auto size = utf8proc_decompose(bytes, text.size(), points.data(), points.size(), options);
  if (size >= utf8proc_ssize_t(points.size())) {  // it tells the size that it needs
    points.resize(size + 1);
    size = utf8proc_decompose(bytes, text.size(), points.data(), points.size(), options);
  }
  if (size < 0) throw std::invalid_argument("must be UTF-8");
  points.resize(utf8proc_normalize_utf32(points.data(), size, options));
  return points;
}

bool IsSpace(utf8proc_int32_t point) {
  const auto category = utf8proc_category(point);
  return (point >= 9 && point <= 13) || (point >= 28 && point <= 31) || point == 0x85 ||
         (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

// A table of characters, whose ids are their places.
struct Table {
  std::vector<std::string> characters;
  std::unordered_map<utf8proc_int32_t, int64_t> ids;

  explicit Table(const fs::path& path) {
    const Json content = ReadJson(path);
    if (content.value("type", "") != "characters") {
      throw Failure(path.filename().string() + ": only tables of characters are read in C++");
    }
    try {
      content.at("characters").get_to(characters);
    } catch (const Json::exception& error) {
      throw Altered(path, error);
    }
    for (size_t id = kSpecial; id < characters.size(); ++id) {
      utf8proc_int32_t point;
      const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(characters[id].data());
      utf8proc_iterate(bytes, characters[id].size(), &point);
      ids.emplace(point, id);
    }
  }

  int64_t IdOf(utf8proc_int32_t point) const {
    const auto found = ids.find(point);
    return found == ids.end() ? kUnknown : found->second;
  }
};

}  // namespace

struct Generator::Parts {
  bool translates, starts;
  int64_t start_id, end_id;
  size_t limit;  // of the tokens of a row
  std::string prefix, separator;  // the name of what a text begins with; "" where it does not
  std::unordered_set<std::string> prefixes;
  std::unique_ptr<const Table> source, target;
  std::unique_ptr<Ort::Env> env;
  std::unique_ptr<Ort::Session> session;

  Parts(const fs::path& bundle, int threads) {
    const Json manifest = ReadJson(bundle / kManifest);
    const int schema = manifest.at("schema_version");
    const std::string pipeline = manifest.at("pipeline");
    const Json &decoding = manifest.at("decoding"), &limits = manifest.at("limits");
    const Json settings = manifest.value("settings", Json::object());
    translates = pipeline == "Translate";
    if (schema != kSchema) throw Failure("the manifest has schema " + std::to_string(schema));
    if (!translates && pipeline != "Generate") throw Failure(pipeline + " is not read in C++");
    if (!settings.value("turns", Json()).is_null()) throw Failure("turns are not read in C++");
    if (!manifest.at("graphs").contains("generate")) {
      throw Failure("there is no graph that generates: export with --generate-in-graph");
    }
    decoding.at("start_id").get_to(start_id);
    decoding.at("end_id").get_to(end_id);
    starts = settings.value("start", false);
    if (const Json given = manifest.value("text_prefix", Json()); !given.is_null()) {
      given.at("name").get_to(prefix);
      given.at("separator").get_to(separator);
      given.at("values").get_to(prefixes);
    }
    limit = limits.at("source_length");
    if (!translates) limit = std::min(limit, limits.at("target_length").get<size_t>() - 1);
    const auto table = [&](const char* role) {
      const Json& files = manifest.at("tokenizers");
      if (!files.contains(role)) throw Failure("frames are not read in C++");
      return std::make_unique<Table>(Verified(bundle, manifest, files.at(role)));
    };
    source = table(translates ? "source" : "text");
    target = table(translates ? "target" : "text");
    const Json& graph = manifest.at("graphs").at("generate");
    for (const Json& file : graph.value("weights", Json::array())) Verified(bundle, manifest, file);
    Ort::SessionOptions options;
    if (threads) options.SetIntraOpNumThreads(threads);
    env = std::make_unique<Ort::Env>(ORT_LOGGING_LEVEL_FATAL);  // what fails is thrown
    if (Overflows(*env)) options.AddConfigEntry("session.x64quantprecision", "1");
    const fs::path file = Verified(bundle, manifest, graph.at("file"));
    session = std::make_unique<Ort::Session>(*env, file.c_str(), options);
  }

  Ids Encode(const std::string& text) const {
    const CodePoints points = Composed(text);
    if (translates && std::all_of(points.begin(), points.end(), IsSpace)) {
      throw std::invalid_argument("is empty or blank; write something to answer");
    }
    if (!prefix.empty()) {
      const auto end = text.find(separator);
      if (end == text.npos || !prefixes.count(text.substr(0, end))) {
        throw std::invalid_argument("must begin with a known " + prefix + " and '" + separator +
                                    "'");
      }
      const CodePoints rest = Composed(text.substr(end + separator.size()));
      if (std::all_of(rest.begin(), rest.end(), IsSpace)) {
        throw std::invalid_argument("has nothing after its " + prefix);
      }
    }
    Ids ids;
    for (const auto point : points) ids.push_back(source->IdOf(point));
    const bool lacks_start = ids.empty() || (starts && ids[0] != start_id);
    if (!translates && lacks_start) ids.insert(ids.begin(), start_id);
    if (ids.size() > limit) {
      throw std::invalid_argument("has " + std::to_string(ids.size()) +
                                  " characters; the limit is " + std::to_string(limit));
    }
    return ids;
  }
};

Generator::Generator(const fs::path& bundle, const std::string& library, int threads) {
  [[maybe_unused]] static const bool is_open = OpenLibrary(library);
  try {
    parts_ = std::make_unique<Parts>(bundle, threads);
  } catch (const Json::exception& error) {
    throw Failure(bundle.string() + ": " + Altered(kManifest, error).what());
  } catch (const std::exception& error) {
    throw Failure(bundle.string() + ": " + error.what());
  }
}

Generator::~Generator() = default;

std::vector<Answer> Generator::operator()(const std::vector<std::string>& texts) const {
  const size_t count = texts.size();
  if (!count) return {};
  std::vector<Ids> rows(count);
  Ids lengths(count);
  for (size_t row = 0; row < count; ++row) {
    try {
      rows[row] = parts_->Encode(texts[row]);
    } catch (const std::invalid_argument& error) {
      throw Refusal(row, error.what());
    }
    lengths[row] = rows[row].size();
  }
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  Ids padded(count * longest);
  for (size_t row = 0; row < count; ++row) {
    std::copy(rows[row].begin(), rows[row].end(), padded.begin() + row * longest);
  }

  const int64_t shape[] = {int64_t(count), int64_t(longest)};
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::Value given[] = {
      Ort::Value::CreateTensor<int64_t>(memory, padded.data(), padded.size(), shape, 2),
      Ort::Value::CreateTensor<int64_t>(memory, lengths.data(), count, shape, 1)};
  constexpr const char* inputs[] = {"token_ids", "lengths"};
  const auto found = parts_->session->Run({}, inputs, given, 2, kOutputs, 3);

  const size_t width = found[0].GetTensorTypeAndShapeInfo().GetShape()[1];
  std::vector<Answer> answers(count);
  for (size_t row = 0; row < count; ++row) {
    const auto* ids = found[0].GetTensorData<int32_t>() + row * width;
    const int32_t size = found[1].GetTensorData<int32_t>()[row];
    answers[row].score = found[2].GetTensorData<float>()[row];
    if (!size || !std::isfinite(answers[row].score)) {
      throw Failure("the graph gave no finite score");
    }
    const size_t begin = parts_->translates ? 0 : rows[row].size();  // behind the prompt
    for (const auto* id = ids + begin; id < ids + size && *id != parts_->end_id; ++id) {
      if (*id >= kSpecial) answers[row].text += parts_->target->characters.at(*id);
    }
  }
  return answers;
}

}  // namespace seqkeras
