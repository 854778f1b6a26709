#include "seqkeras.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "bundle.h"

namespace seqkeras {
namespace {

using Ids = std::vector<int64_t>;
using CodePoints = std::vector<utf8proc_int32_t>;

constexpr int64_t kUnknown = 1, kSpecial = 4;  // <pad>, <unk>, <bos>, <eos>, then the characters
constexpr const char* kOutputs[] = {"generated_ids", "generated_lengths", "scores"};

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
  std::unique_ptr<Graph> graph;

  Parts(const Bundle& bundle, int threads) {
    const Json& manifest = bundle.manifest;
    const std::string pipeline = manifest.at("pipeline");
    const Json &decoding = manifest.at("decoding"), &limits = manifest.at("limits");
    const Json settings = manifest.value("settings", Json::object());
    translates = pipeline == "Translate";
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
      return std::make_unique<Table>(bundle.Verified(files.at(role)));
    };
    source = table(translates ? "source" : "text");
    target = table(translates ? "target" : "text");
    graph = bundle.Open(manifest.at("graphs").at("generate"), threads);
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

Generator::Generator(const fs::path& bundle, const std::string& library, int threads)
    : parts_(Opened(bundle, library, [threads](const Bundle& opened) {
        return std::make_unique<Parts>(opened, threads);
      })) {}

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
  const auto found = parts_->graph->session.Run({}, inputs, given, 2, kOutputs, 3);

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
