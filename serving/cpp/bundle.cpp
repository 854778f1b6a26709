#include "bundle.h"

#include <dlfcn.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace seqkeras {
namespace {

constexpr uint32_t kApi = 17;  // of onnxruntime 1.17; later ones have it too
constexpr int kSchema = 3;     // the latest manifest that is read

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

}  // namespace

void OpenLibrary(const std::string& path) {
  [[maybe_unused]] static const OrtApi* api = [&path] {
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);  // is read when the library is opened
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = library ? dlsym(library, "OrtGetApiBase") : nullptr;
    if (!symbol) throw Failure(dlerror());
    const OrtApiBase* base = reinterpret_cast<const OrtApiBase* (*)()>(symbol)();
    const OrtApi* found = base->GetApi(kApi);
    if (!found) {
      throw Failure(path + " must be of 1.17 or later; it is " + base->GetVersionString());
    }
    Ort::InitApi(found);
    return found;
  }();
}

// The library says "[json.exception.out_of_range.403] key 'a' not found".
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

std::string Sha256(std::istream& stream) {
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
  return text;
}

Bundle::Bundle(const fs::path& folder) : folder(folder), manifest(ReadJson(folder / kManifest)) {
  const int schema = manifest.at("schema_version");
  if (schema != kSchema) throw Failure("the manifest has schema " + std::to_string(schema));
}

fs::path Bundle::Verified(const std::string& name) const {
  if (fs::path(name).is_absolute() || name.find("..") != name.npos) {
    throw Failure("the manifest names a file outside of it, " + name);
  }
  std::ifstream stream(folder / name, std::ios::binary);
  if (!stream) throw Failure(name + " is missing, or can not be read");
  if (manifest.at("files").at(name).at("sha256") != Sha256(stream)) {
    throw Failure(name + " does not have the manifest's sha256: copy the bundle again");
  }
  return folder / name;
}

std::unique_ptr<Graph> Bundle::Open(const Json& graph, int threads) const {
  for (const Json& file : graph.value("weights", Json::array())) Verified(file);
  Ort::SessionOptions options;
  if (threads) options.SetIntraOpNumThreads(threads);
  Ort::Env env(ORT_LOGGING_LEVEL_FATAL);  // what fails is thrown
  if (Overflows(env)) options.AddConfigEntry("session.x64quantprecision", "1");
  Ort::Session session(env, Verified(graph.at("file")).c_str(), options);
  return std::make_unique<Graph>(Graph{std::move(env), std::move(session)});
}

}  // namespace seqkeras
